"""The Spark side: a Python data source whose readers take their splits from the enumerator."""
