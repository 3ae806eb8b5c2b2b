"""The SparkApplication for Kubeflow's operator.

Everything set, and only its first size depends on parallelism.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source_operator.controller.application_facts import is_made_from
from balanced_source_operator.resources.access import role, role_binding
from balanced_source_operator.resources.kinds import HASH_ANNOTATION, SECRETS_ANNOTATION
from balanced_source_operator.resources.spark_application import application_hash, spark_application
from balanced_source_operator.spec.application import Application, Driver
from support.builders import identity, make_spec, spec_json
from support.golden_files import FOLDER


def manifest(
    *,
    parallelism: int = 4,
    secrets: tuple[str, ...] = (),
    is_bounded: bool = False,
    max_failures: int | None = None,
    **application: Any,
) -> dict[str, Any]:
    spec = make_spec(application={**spec_json()["application"], **application})
    return spark_application(
        identity(),
        spec.application,
        name="orders-1",
        parallelism=parallelism,
        secrets=secrets,
        conf={"spark.x": "1"},
        is_bounded=is_bounded,
        max_failures=max_failures,
    )


def environment(role_spec: dict[str, Any]) -> dict[str, str]:
    found = role_spec["template"]["spec"]["containers"][0].get("env", [])
    return {e["name"]: e.get("value") or e["valueFrom"]["fieldRef"]["fieldPath"] for e in found}


def test_every_field_that_a_webhook_would_default_is_set() -> None:
    spec = manifest()["spec"]

    assert (spec["mode"], spec["type"], spec["pythonVersion"]) == ("cluster", "Python", "3")
    assert {"cores", "memory", "instances"} <= spec["executor"].keys()
    assert spec["restartPolicy"]["onFailureRetryInterval"] > 0
    assert spec["restartPolicy"]["onSubmissionFailureRetryInterval"] > 0


@pytest.mark.parametrize(
    ("parallelism", "cores", "want"), [(1, 1, 1), (4, 2, 2), (5, 2, 3), (1, 8, 1)]
)
def test_executors_give_every_reader_a_slot(parallelism: int, cores: int, want: int) -> None:
    assert (
        manifest(parallelism=parallelism, executor={"cores": cores})["spec"]["executor"][
            "instances"
        ]
        == want
    )


def test_a_setting_that_came_later_changes_nothing_while_it_is_absent() -> None:
    """Or an upgrade of the operator would restart every source."""

    class NewerDriver(Driver):
        added: str = "default"

    class Newer(Application):
        also_added: str | None = None
        driver: NewerDriver = NewerDriver()

    settings = spec_json()["application"]
    known, newer = Application.model_validate(settings), Newer.model_validate(settings)
    asked = Newer.model_validate({**settings, "driver": {"added": "other"}})

    hashes = [application_hash(identity(), each, conf={}) for each in (known, newer, asked)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_parallelism_does_not_change_the_hash_but_every_setting_does() -> None:
    plain = manifest()["metadata"]["annotations"][HASH_ANNOTATION]

    assert manifest(parallelism=9)["metadata"]["annotations"][HASH_ANNOTATION] == plain
    for change in (
        {"image": "other"},
        {"sparkConf": {"spark.a": "b"}},
        {"driver": {"memory": "2g"}},
    ):
        assert manifest(**change)["metadata"]["annotations"][HASH_ANNOTATION] != plain
    assert manifest(secrets=("s",))["metadata"]["annotations"][HASH_ANNOTATION] == plain
    assert manifest(secrets=("s", "t"))["metadata"]["annotations"][SECRETS_ANNOTATION] == "s,t"


OVERRIDES = make_spec(
    application={**spec_json()["application"], "sparkConf": {"spark.a": "1"}}
).application


@pytest.mark.parametrize(
    ("conf", "want"),
    [
        ({"spark.x": "1"}, "857f5a1a1d466f9c"),
        ({"spark.x": "1", "spark.a": "2"}, "44f2b307abe1ffba"),
    ],
)
def test_an_application_of_release_0_1_0_is_still_recognised(
    conf: dict[str, str], want: str
) -> None:
    """These hashes were made by that release.

    They stand in running applications, and never change.
    """
    assert application_hash(identity(), OVERRIDES, conf=conf).split(",")[1:] == [want]


HASHES = json.loads((FOLDER / "application-hashes.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("version", ["release 0.1.0", "2"])
@pytest.mark.parametrize("case", HASHES.values(), ids=list(HASHES))
def test_an_application_of_any_earlier_version_is_recognised_and_another_one_is_not(
    case: Mapping[str, Any], version: str
) -> None:
    """These hashes were made by release 0.1.0 and by the version before restart policies."""
    application = Application.model_validate(case["application"])
    wanted = application_hash(identity(), application, conf=case["conf"])
    other = application_hash(
        identity(), application.model_copy(update={"image": "x"}), conf=case["conf"]
    )

    assert is_made_from(case[version], wanted)
    assert not is_made_from(case[version], other)
    assert is_made_from(wanted, case[version].split(",")[0]), (
        "an operator before this one restarts nothing either"
    )


def test_a_hash_is_compared_in_the_newest_version_that_both_know() -> None:
    assert is_made_from("3-z,2-b,a", "2-b,a")
    assert not is_made_from("3-z,2-b,a", "2-c,a")
    assert not is_made_from("3-z", "2-b,a")


def test_a_chart_wide_setting_counts_only_where_the_source_does_not_override_it() -> None:
    settings: list[dict[str, str]] = [{}, {"spark.a": "2"}, {"spark.x": "2"}]
    versions = [
        application_hash(identity(), OVERRIDES, conf=conf).split(",")[0] for conf in settings
    ]

    assert versions[0] == versions[1] != versions[2]


def test_a_recreated_source_gets_another_application() -> None:
    application = make_spec().application
    other = type(identity())(namespace="default", name="orders", uid="another")

    hashes = {application_hash(source, application, conf={}) for source in (identity(), other)}

    assert len(hashes) == 2


def test_the_users_conf_wins_over_the_operators_and_ours() -> None:
    conf = manifest(sparkConf={"spark.x": "2", "spark.python.unix.domain.socket.enabled": "false"})[
        "spec"
    ]["sparkConf"]

    assert conf["spark.x"] == "2"
    assert conf["spark.python.unix.domain.socket.enabled"] == "false"


def test_the_driver_knows_its_source_and_its_pipeline() -> None:
    variables = environment(manifest()["spec"]["driver"])

    assert variables["BALANCED_SOURCE_NAME"] == "orders"
    assert (
        json.loads(variables["BALANCED_SOURCE_PIPELINE"])["checkpointLocation"]
        == "/data/checkpoint"
    )


def test_ones_own_program_gets_no_pipeline() -> None:
    own = manifest(mainApplicationFile="local:///app/mine.py")

    assert "BALANCED_SOURCE_PIPELINE" not in environment(own["spec"]["driver"])


def test_users_templates_are_completed_not_replaced() -> None:
    template = {
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "containers": [
                {"name": "sidecar"},
                {"name": "spark-kubernetes-driver", "env": [{"name": "A", "value": "1"}]},
            ]
        },
    }

    made = manifest(driver={"template": template}, secrets=("kafka",))["spec"]["driver"]["template"]

    assert made["metadata"] == {"labels": {"team": "a"}}
    sidecar, spark = made["spec"]["containers"]
    assert sidecar == {"name": "sidecar"}
    assert {"name": "A", "value": "1"} in spark["env"]
    assert spark["volumeMounts"][0]["mountPath"] == "/etc/balanced-source/secrets/kafka"
    assert template["spec"]["containers"][1]["env"] == [{"name": "A", "value": "1"}], (
        "the spec itself is not touched"
    )


def test_secrets_are_mounted_in_driver_and_executors_by_reference() -> None:
    spec = manifest(secrets=("kafka",))["spec"]

    for part in ("driver", "executor"):
        volumes = spec[part]["template"]["spec"]["volumes"]
        secret = {"secretName": "kafka", "optional": True}
        assert volumes == [{"name": "bsrc-secret-kafka", "secret": secret}], (
            "without it the others are read"
        )


@pytest.mark.parametrize("is_bounded", [False, True])
@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"processingTime": "1s"}])
def test_a_query_that_has_ended_is_not_started_again(
    trigger: dict[str, Any], *, is_bounded: bool
) -> None:
    """Of an unbounded source it is reported: it would end again at once."""
    pipeline = {"checkpointLocation": "/c", "trigger": trigger}

    policy = manifest(pipeline=pipeline, is_bounded=is_bounded)["spec"]["restartPolicy"]

    ends = is_bounded or "availableNow" in trigger
    retries = 5 if ends else 2**31 - 1
    assert (policy["type"], policy["onFailureRetries"]) == ("OnFailure", retries)
    assert policy["onSubmissionFailureRetries"] == retries


@pytest.mark.parametrize(("max_failures", "restarts"), [(1, 0), (3, 2)])
def test_the_last_failure_that_is_allowed_is_not_followed_by_a_restart(
    max_failures: int, restarts: int
) -> None:
    policy = manifest(max_failures=max_failures)["spec"]["restartPolicy"]
    assert (policy["type"], policy["onFailureRetries"]) == ("OnFailure", restarts)
    assert policy["onSubmissionFailureRetries"] == 5


def test_everything_is_owned_by_the_source() -> None:
    for made in (manifest(), role(identity()), role_binding(identity(), ["spark"])):
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == (
            "BalancedSource",
            identity().uid,
            True,
        )


def test_the_driver_may_read_its_assignment_and_write_its_report_and_nothing_else() -> None:
    rules = role(identity())["rules"]

    allowed = {
        (verb, name) for rule in rules for verb in rule["verbs"] for name in rule["resourceNames"]
    }

    assert all(rule["resources"] == ["configmaps"] for rule in rules)
    assert allowed == {
        ("get", "orders-assignment"),
        ("list", "orders-assignment"),
        ("watch", "orders-assignment"),
        ("get", "orders-readers"),
        ("patch", "orders-readers"),
        *(("get", f"orders-assignment-{number}") for number in range(16)),
    }


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("driver", "BALANCED_SOURCE_ZONE"),
        ("executor", "BALANCED_SOURCE_ZONE"),
        ("executor", "BALANCED_SOURCE_RACK"),  # as executors with an image of release 0.1.0 know it
    ],
)
def test_pods_know_their_zone_unless_the_user_says_where_they_are(role: str, name: str) -> None:
    def zones(**changes: Any) -> list[dict[str, Any]]:
        variables = manifest(**{role: changes})["spec"][role]["template"]["spec"]["containers"][0][
            "env"
        ]
        return [v for v in variables if v["name"] == name]

    (told,) = zones()
    assert (
        told["valueFrom"]["fieldRef"]["fieldPath"]
        == "metadata.labels['topology.kubernetes.io/zone']"
    )
    mine = {"name": name, "value": "eu-1a"}
    container = {"name": f"spark-kubernetes-{role}", "env": [mine]}
    assert zones(template={"spec": {"containers": [container]}}) == [mine]
