"""Settings that may be secret are recorded as a short digest, which a later operator compares."""

from balanced_source_operator.resources.made_from import settings_of
from support.builders import make_spec


def test_a_digest_is_the_same_in_all_releases() -> None:
    """Else an upgrade would find a change of settings in each application."""
    application = make_spec().application
    settings = settings_of(application, conf={"spark.api.password": "hunter2"}, uid="u1")

    hidden = {place: leaf for place, leaf in settings.items() if isinstance(leaf, list)}
    assert list(hidden.values()) == [["7504045333d3"]]
