"""Volumes of Secrets have names that Kubernetes accepts, a different one for each Secret."""

import re

import pytest

from balanced_source_operator.resources.pod_templates import _volume

LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
PLAIN = len(_volume("x")) - 1
"""Characters before the name of a Secret that is used as it is."""


def names() -> list[str]:
    longest = "s" * (63 - PLAIN)
    return ["kafka", longest, longest + "s", "kafka.shop", "kafka-shop", "s" * 253, "s" * 252 + "t"]


@pytest.mark.parametrize("secret", names())
def test_the_name_of_a_volume_is_a_label(secret: str) -> None:
    assert LABEL.fullmatch(_volume(secret))
    assert len(_volume(secret)) <= 63


def test_each_secret_has_a_volume_of_its_own() -> None:
    made = [_volume(secret) for secret in names()]

    assert len(set(made)) == len(made)
    assert made[0].endswith("kafka")
    assert made[1].endswith("s" * (63 - PLAIN)), "as long as it fits it is used as it is"
    assert "kafka-shop-" in made[3], "people recognise it"
