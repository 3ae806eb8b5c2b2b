"""Bad input and faults.

A sentence that says what to do, a retry, and the running query untouched.
"""

import base64
import json
from typing import Any

import pytest

from balanced_source.documents.storage import PLAIN_KEY, unpack
from balanced_source_operator.resources.documents import blob_of
from support.stand_in_driver import StandInDriver
from support.story.operator_process import OperatorProcess
from support.story.watch import SourceView
from testbed.control_plane import ControlPlane
from testbed.errors import CommandError
from testbed.kafka import KafkaCluster, KafkaSecurity, Listener, Mechanism
from testbed.versions import CHECKOUT

from .conftest import FAST, World


def reading(world: World, partitions: int = 4) -> StandInDriver:
    """A source that is read by two readers."""
    world.kafka.admin.create_topic(world.topic, partitions=partitions)
    world.apply()
    driver = world.driver()
    driver.adopt(parallelism=2)
    world.wait(
        lambda: world.source.status["acknowledgedEpoch"] == world.source.status["epoch"],
        "acknowledgement",
    )
    return driver


def refused(world: World, **spec: Any) -> str:
    """What the API server says to a spec."""
    with pytest.raises(CommandError) as caught:
        world.apply(**spec)
    return str(caught.value.stderr)


# --- what the API server refuses ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"parallelism": 0}, "greater than or equal to 1", id="no readers"),
        pytest.param(
            {"assignment": {"strategy": "Random"}}, 'Unsupported value: "Random"', id="strategy"
        ),
        pytest.param(
            {"kafka": {"subscription": {"topics": ["a"], "topicPattern": "b"}}},
            "set exactly one of topics, topicPattern, partitions",
            id="two subscriptions",
        ),
        pytest.param(
            {"kafka": {"subscription": {}}},
            "set exactly one of topics, topicPattern, partitions",
            id="none",
        ),
        pytest.param(
            {"properties": {"group.id": "mine"}},
            "property group.id is reserved: readers are assigned by the enumerator, never by a"
            " consumer group",
            id="reserved property",
        ),
        pytest.param(
            {"properties": {"sasl.password": "hunter2"}},
            "put them into a Secret and name it in propertiesFrom",
            id="secret",
        ),
        pytest.param({"kafka": {"discovery": {"interval": "soon"}}}, "should match", id="duration"),
        pytest.param(
            {"application": {"pipeline": None}},
            "the packaged application needs pipeline",
            id="no pipeline",
        ),
        pytest.param(
            {"sparkConf": {"spark.executor.instances": "9"}},
            "follows from parallelism and executor.cores",
            id="executors",
        ),
        pytest.param(
            {"trigger": {"availableNow": True, "processingTime": "1s"}},
            "set either processingTime, or",
            id="trigger",
        ),
    ],
)
def test_the_api_server_refuses_in_words(world: World, change: dict[str, Any], says: str) -> None:
    manifest = world.manifest()["spec"]
    spec: dict[str, Any] = {k: v for k, v in change.items() if k in ("parallelism", "assignment")}
    if "kafka" in change:
        spec["source"] = world.kafka_spec(**change["kafka"])
    if "properties" in change:
        cluster = {"name": "main", "bootstrapServers": "b:1", "properties": change["properties"]}
        spec["source"] = world.kafka_spec(clusters=[cluster])
    if "application" in change or "sparkConf" in change or "trigger" in change:
        application = {**manifest["application"], **change.get("application", {})}
        if "sparkConf" in change:
            application["sparkConf"] = change["sparkConf"]
        if "trigger" in change:
            application["pipeline"] = {**application["pipeline"], "trigger": change["trigger"]}
        spec["application"] = {k: v for k, v in application.items() if v is not None}

    told = refused(world, **spec)

    assert says in told


def test_the_name_is_checked_where_it_will_be_used(world: World) -> None:
    manifest = world.manifest()
    manifest["metadata"]["name"] = "9" * 41

    with pytest.raises(CommandError) as caught:
        world.control_plane.apply(manifest)

    assert "at most 40 lower case letters" in str(caught.value.stderr)


def test_explain_reads_well(world: World) -> None:
    told = " ".join(world.kubectl("explain", "bsrc.spec.source.kafka.subscription").split())

    assert "Discovery finds topics that are created later." in told
    assert "All partitions of the topics whose whole name matches this regular expression" in told


# --- what the operator says -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "says"),
    [
        pytest.param(
            {"resources": {"requests": {"cpu": "lots"}}},
            "requests.cpu must be a quantity",
            id="schema",
        ),
        pytest.param({"env": [{"value": "1"}]}, "env[0].name: Required value", id="dry run"),
        pytest.param({"resourcez": {}}, "unknown field", id="unknown field"),
    ],
)
def test_nothing_is_created_from_an_invalid_pod_template(
    world: World, container: dict[str, Any], says: str
) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=1)
    template = {"spec": {"containers": [{"name": "spark-kubernetes-driver", **container}]}}
    application = {**world.manifest()["spec"]["application"], "driver": {"template": template}}
    world.apply(application=application)

    condition = world.wait_condition("Ready", "False", "InvalidSpec")

    assert "spec.application.driver.template" in condition["message"]
    assert says in condition["message"]
    assert not world.control_plane.items("sparkapplications.sparkoperator.k8s.io", world.namespace)


def test_an_invalid_spec_is_reported_and_the_running_query_continues(world: World) -> None:
    """`parallelism` takes effect all the same; everything else stays as it was."""
    driver = reading(world)
    before = world.source.assignment

    cluster = world.manifest()["spec"]["source"]["kafka"]["clusters"][0]
    broken = {**cluster, "properties": {"ssl.truststore.location": "/etc/pki/trust.jks"}}
    world.source.patch({"parallelism": 3, "source": {"kafka": {"clusters": [broken]}}})

    condition = world.wait_condition("Ready", "False", "InvalidSpec")
    assert "ssl.truststore.location" in condition["message"]
    assert driver.batch(rows_per_split=1)
    driver.adopt(parallelism=3)
    assert world.source.assignment.settings == before.settings
    world.source.patch({"source": {"kafka": {"clusters": [cluster]}}})
    world.wait_condition("Degraded", "False")
    driver.adopt(parallelism=3)


def test_an_unknown_topic_is_named_and_found_when_it_appears(world: World) -> None:
    world.apply()

    condition = world.wait_condition("Degraded", "True", "UnknownTopic")
    assert f"topic {world.topic} does not exist on cluster main: create it" in condition["message"]
    world.kafka.admin.create_topic(world.topic, partitions=3)

    world.wait_condition("Degraded", "False")
    world.wait(
        lambda: world.config_map("assignment") and len(world.source.assignment.owners) == 3,
        "its partitions",
    )


def test_a_pattern_without_a_match_is_reported(world: World) -> None:
    world.apply(source=world.kafka_spec(subscription={"topicPattern": f"{world.namespace}-none.*"}))

    condition = world.wait_condition("Degraded", "True", "NoTopicMatches")
    assert "matches topicPattern" in condition["message"]
    world.kafka.admin.create_topic(f"{world.namespace}-none-1", partitions=2)

    world.wait_condition("Degraded", "False")


def test_an_unreachable_broker_is_reported_and_read_once_it_answers(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with KafkaCluster("late", tmp_path_factory.mktemp("late")) as late:
        late.admin.create_topic(world.topic, partitions=2)
        late.kill()
        clusters = [{"name": "main", "bootstrapServers": late.bootstrap}]
        world.apply(source=world.kafka_spec(clusters=clusters))
        condition = world.wait_condition("Degraded", "True", "ClusterUnreachable")
        assert (
            "check the addresses of its brokers (bootstrapServers; as an option"
            " kafka.bootstrap.servers) and the network"
        ) in condition["message"]

        late.start_node()

        world.wait_condition("Degraded", "False", timeout=60)
        assert len(world.source.assignment.owners) == 2


def test_one_unreachable_cluster_does_not_hold_up_the_others(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=2)
    clusters = [
        {"name": "main", "bootstrapServers": world.kafka.bootstrap},
        {"name": "gone", "bootstrapServers": "127.0.0.1:1"},
    ]

    world.apply(source=world.kafka_spec(clusters=clusters))

    world.wait(
        lambda: world.config_map("assignment") and len(world.source.assignment.owners) == 2,
        "main's splits",
        8,
    )
    assert world.wait_condition("Degraded", "True", "ClusterUnreachable")["message"].startswith(
        "cluster gone"
    )


def test_wrong_credentials_are_reported_and_corrected_ones_are_used(
    world: World, operator: OperatorProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Neither is in any object, event or log afterwards, plain, packed or encoded."""
    right, wrong = "correct-horse", "battery-staple"
    security = KafkaSecurity(users={"alice": right})
    with KafkaCluster("secured", tmp_path_factory.mktemp("secured"), security=security) as secured:
        secured.admin.create_topic(world.topic, partitions=2)
        settings = secured.client_config(Listener.SASL, user="alice", mechanism=Mechanism.PLAIN)
        secret = {
            k: v for k, v in settings.items() if k.startswith("sasl.") and "mechanism" not in k
        }
        plain = {k: v for k, v in settings.items() if k not in secret and k != "bootstrap.servers"}
        world.kubectl(
            "create",
            "secret",
            "generic",
            "kafka",
            "--from-literal=sasl.username=alice",
            f"--from-literal=sasl.password={wrong}",
        )
        cluster = {
            "name": "main",
            "bootstrapServers": settings["bootstrap.servers"],
            "properties": plain,
            "propertiesFrom": [{"secretRef": {"name": "kafka"}}],
        }
        world.apply(source=world.kafka_spec(clusters=[cluster]))

        condition = world.wait_condition("Degraded", "True", "AuthenticationFailed", timeout=60)
        assert "check the credentials" in condition["message"]
        world.kubectl(
            "patch", "secret", "kafka", "-p", json.dumps({"stringData": {"sasl.password": right}})
        )

        world.wait_condition("Degraded", "False", timeout=60)
        kinds = "configmaps,events,bsrc,sparkapplications,roles,rolebindings"
        told = world.kubectl("get", kinds, "-o", "json")
        documents = [
            unpack(blob_of(world.config_map(name) or {})) for name in ("enumerator", "assignment")
        ]
    assert "AuthenticationFailed" in told
    everything = "\n".join([told, *documents, operator.log])
    encoded = [base64.b64encode(secret.encode()).decode() for secret in (right, wrong)]
    assert not [secret for secret in (right, wrong, *encoded) if secret in everything]


def test_a_missing_secret_is_named(world: World) -> None:
    cluster = {
        "name": "main",
        "bootstrapServers": world.kafka.bootstrap,
        "propertiesFrom": [{"secretRef": {"name": "nowhere"}}],
    }
    world.apply(source=world.kafka_spec(clusters=[cluster]))

    assert (
        "secret nowhere does not exist"
        in world.wait_condition("Degraded", "True", "SecretNotFound")["message"]
    )


def test_a_missing_service_account_is_named_and_found_when_it_appears(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=1)
    application = {**world.manifest()["spec"]["application"], "serviceAccount": "special"}
    world.apply(application=application)

    world.wait_condition("Degraded", "True", "ServiceAccountMissing")
    world.kubectl("create", "serviceaccount", "special")

    world.wait_condition("Degraded", "False")


# --- documents that someone touched --------------------------------------------------------------


@pytest.mark.parametrize("document", ["enumerator", "assignment"])
@pytest.mark.parametrize("harm", ["edited", "emptied", "deleted"])
def test_an_edited_document_is_restored_and_reported(
    world: World, document: str, harm: str
) -> None:
    driver = reading(world)
    before = world.config_map(document)
    assert before is not None

    if harm == "deleted":
        world.kubectl("delete", "configmap", f"orders-{document}")
    else:
        text = (
            before["data"][PLAIN_KEY].replace('"epoch":2', '"epoch":9') if harm == "edited" else ""
        )
        world.kubectl(
            "patch",
            "configmap",
            f"orders-{document}",
            "-p",
            json.dumps({"data": {PLAIN_KEY: text}}),
        )

    def is_restored() -> bool:
        text = ((world.config_map(document) or {}).get("data") or {}).get(PLAIN_KEY, "")
        return '"epoch":2' in text and '"epoch":9' not in text

    world.wait(is_restored, "the document")
    assert {"StateRestored", "AssignmentRestored"} & set(world.events())
    assert driver.batch(rows_per_split=1)
    world.source.patch({"parallelism": 3})
    driver.adopt(parallelism=3)


def test_a_report_that_was_deleted_is_written_again_and_nothing_is_lost(world: World) -> None:
    driver = reading(world)
    driver.batch(rows_per_split=5)

    world.kubectl("delete", "configmap", "orders-readers")

    world.wait(lambda: (world.config_map("readers") or {}).get("data"), "a new report")
    assert set(world.source.report.positions.values()) == {5}
    assert world.source.report.incarnation == 1


def test_state_that_is_corrupt_when_the_operator_starts_is_refused_until_it_is_deleted(
    world: World, operator: OperatorProcess
) -> None:
    """The operator neither trusts it nor throws it away.

    Deleted, it is rebuilt from the report of the driver.
    """
    driver = reading(world)
    driver.batch(rows_per_split=11)
    world.wait(lambda: set(world.source.report.positions.values()) == {11}, "progress")
    operator.kill()
    world.kubectl(
        "patch", "configmap", "orders-enumerator", "-p", json.dumps({"data": {PLAIN_KEY: "{}"}})
    )
    operator.start()

    condition = world.wait_condition("Degraded", "True", "StateCorrupt")
    assert "Restore the ConfigMap from a backup, or delete it" in condition["message"]
    assert driver.batch(rows_per_split=1), "the query is untouched"
    world.kubectl("delete", "configmap", "orders-enumerator")

    world.wait_condition("Degraded", "False")
    world.source.patch({"parallelism": 4})
    offset = driver.adopt(parallelism=4)
    assert set(offset.positions.values()) == {12}


def test_state_and_assignment_lost_while_no_operator_runs_are_rebuilt_from_the_readers(
    world: World, operator: OperatorProcess
) -> None:
    driver = reading(world)
    driver.batch(rows_per_split=3)
    operator.kill()
    world.kubectl("delete", "configmap", "orders-enumerator", "orders-assignment")
    operator.start()

    world.source.patch({"parallelism": 3})

    driver.adopt(parallelism=3)
    world.wait(
        lambda: driver.batch() or len(driver.offset.owners) == 4, "all splits to be assigned again"
    )
    assert len(driver.offset.owners) == 4
    assert set(driver.offset.positions.values()) == {3}


# --- the API server and the Spark operator --------------------------------------------------------


def test_an_api_server_outage_does_not_touch_the_query(world: World) -> None:
    driver = reading(world)

    world.control_plane.kill_apiserver()
    assert all(driver.batch(rows_per_split=1) for _ in range(20))
    world.control_plane.start_apiserver()

    world.wait(
        lambda: set(world.source.report.positions.values()) == {20},
        "the report after the outage",
        60,
    )
    world.source.patch({"parallelism": 3})
    driver.adopt(parallelism=3, timeout=60)


def test_a_missing_spark_operator_is_reported_and_found_once_installed(
    kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory, spark_crds: Any
) -> None:
    with ControlPlane(tmp_path_factory.mktemp("bare"), crds=[CHECKOUT / "crds"]) as bare:
        operator = OperatorProcess(bare, settings=FAST)
        operator.start()
        world = World(bare, kafka, "bare")
        kafka.admin.create_topic(world.topic, partitions=2)
        world.apply()

        condition = world.wait_condition("Degraded", "True", "SparkOperatorMissing")
        assert "install Kubeflow's spark-operator" in condition["message"]
        bare.apply(spark_crds)

        world.wait_condition("Degraded", "False", timeout=60)
        get = "sparkapplications.sparkoperator.k8s.io"
        world.wait(lambda: bare.items(get, world.namespace), "the application", 60)
        operator.stop()


def test_two_operators_at_once_do_not_overwrite_each_other(world: World) -> None:
    """No one should run two without a Lease.

    If it happens, conflicts are loud and the state stays one.
    """
    driver = reading(world)
    second = OperatorProcess(world.control_plane, settings=FAST)
    second.start()
    try:
        for parallelism in (5, 1, 4, 2):
            world.source.patch({"parallelism": parallelism})
            driver.adopt(parallelism=parallelism)
    finally:
        second.stop()

    view: SourceView = world.source
    assert sorted(view.assignment.owners) == sorted(driver.offset.owners)
