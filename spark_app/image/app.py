"""The program in the image: see `balanced_source_spark.application`."""

from balanced_source_spark.application import main

main()
