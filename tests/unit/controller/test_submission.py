"""The sentence that matters, in what spark-submit prints."""

import pytest

from balanced_source_operator.controller.diagnosis import cause, diagnose
from balanced_source_operator.controller.submission import failure_in
from support.builders import driver_pod, spark_application

HEAD = """failed to run spark-submit: WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/27 22:03:54 INFO SparkKubernetesClientFactory: Auto-configuring K8S client
"""
ANSWER = 'pods "orders-1-driver" is forbidden: exceeded quota: none, used: pods=0, limited: pods=0'
TRACE = f"""{HEAD}26/11/27 22:03:58 ERROR Client: Please check "kubectl auth can-i create pod".
Exception in thread "main" io.fabric8.kubernetes.client.KubernetesClientException: Failure\
 executing: POST at: https://127.0.0.1:6443/api/v1/namespaces/tight/pods. Message: {ANSWER}.\
 Received status: Status(apiVersion=v1, code=403, details=StatusDetails(causes=[])).
\tat io.fabric8.kubernetes.client.KubernetesClientException.copyAsCause(X.java:205)
"""
MISSING = f"""{HEAD}Exception in thread "main" java.lang.RuntimeException: wrapped
\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
Caused by: java.io.FileNotFoundException: /opt/app.py does not exist
\t... 3 more
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TRACE, ANSWER),
        (MISSING, "java.io.FileNotFoundException: /opt/app.py does not exist"),
        ("driver container failed with ExitCode: 1", "driver container failed with ExitCode: 1"),
        (f"{HEAD}Error: no main class", f"{HEAD.splitlines()[0]} Error: no main class"),
        ("", ""),
    ],
)
def test_the_cause_is_found(text: str, expected: str) -> None:
    assert failure_in(text) == expected


def submission_problem(error_message: str) -> tuple[str, str]:
    state = {"state": "SUBMISSION_FAILED", "errorMessage": error_message}
    application = {"metadata": {"name": "orders-1"}, "status": {"applicationState": state}}
    problem = diagnose(application, [], may_end=False, now=0.0)
    assert problem is not None
    return problem.reason, problem.message


def test_a_quota_has_its_reason_and_what_to_do() -> None:
    reason, message = submission_problem(TRACE)

    assert reason == "QuotaExceeded"
    assert message == (
        f"SparkApplication orders-1 could not be submitted: {ANSWER}. Raise the ResourceQuota of"
        " the namespace or delete objects that are not needed; the Spark operator tries again"
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ('pods "p" is forbidden: failed quota: q: must specify limits.cpu', "QuotaExceeded"),
        ('pods "p" is forbidden: violates PodSecurity "restricted:latest"', "AdmissionDenied"),
        ('admission webhook "x.example" denied the request: no', "AdmissionDenied"),
        # The rights of the Spark operator: our advice about the rights of this operator is wrong.
        ('User "spark" cannot create resource "pods"', "SubmissionFailed"),
        ("no such image", "SubmissionFailed"),
    ],
)
def test_a_refused_driver_pod_has_the_reason_of_the_refusal(words: str, reason: str) -> None:
    assert submission_problem(words)[0] == reason


def test_the_cause_is_that_of_the_pod_if_the_application_has_no_message() -> None:
    application, pod = spark_application(state="FAILED"), driver_pod(phase="Failed")
    ended = {"terminated": {"exitCode": 3, "reason": "Error"}}
    pod["status"]["containerStatuses"] = [{"name": "driver", "state": ended}]

    assert cause(application, [pod]) == "pod orders-1-driver: Error (exit code 3)"
    assert cause(application, []) == "no cause is known"
