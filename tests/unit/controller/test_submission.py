"""The sentence that matters, in what spark-submit prints."""

import pytest

from balanced_source_operator.controller.diagnosis import cause, diagnose
from balanced_source_operator.controller.submission import failure_in, reason_in
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


PYTHON = """Traceback (most recent call last):
  File "/opt/app.py", line 3, in <module>
    spark.read.table(name)
NameError: name 'name' is not defined
26/11/29 10:00:00 INFO ShutdownHookManager: Shutdown hook called
Exception in thread "main" org.apache.spark.SparkUserAppException: User application exited with 1
\tat org.apache.spark.deploy.PythonRunner$.main(PythonRunner.scala:103)
"""
PY4J = """    return f(*a, **kw)
py4j.protocol.Py4JJavaError: An error occurred while calling o61.load.
: org.apache.spark.SparkException: wrapped
\tat org.apache.spark.sql.Dataset.head(Dataset.scala:1)
Caused by: java.io.IOException: No FileSystem for scheme "s3"
\t... 3 more
"""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (PYTHON, "NameError: name 'name' is not defined"),
        (PY4J, 'java.io.IOException: No FileSystem for scheme "s3"'),
        ("KeyboardInterrupt\n26/11/29 10:00:00 INFO X: bye\n", "KeyboardInterrupt"),
        ("preparing\nexec: python3: not found\n", "exec: python3: not found"),
        (f"{HEAD}26/11/29 10:00:00 INFO X: bye\n", "failed to run spark-submit: WARNING: Using "),
        ("the option path is missing", "the option path is missing"),
        ("26/11/29 10:00:00 INFO A: a\n26/11/29 10:00:00 INFO B: b\n", ""),
        ("", ""),
    ],
)
def test_the_output_of_a_driver_says_why_it_ended(output: str, expected: str) -> None:
    found = reason_in(output)

    assert found.startswith(expected)
    assert bool(found) is bool(expected)


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
        ('error looking up service account a/b: serviceaccount "b" not found', "SubmissionFailed"),
    ],
)
def test_a_refused_driver_pod_has_the_reason_of_the_refusal(words: str, reason: str) -> None:
    assert submission_problem(words)[0] == reason


def test_a_missing_service_account_is_to_be_created() -> None:
    words = 'error looking up service account jobs/spark: serviceaccount "spark" not found'

    assert (
        'spark" not found. Create the service account of the driver'
        in (submission_problem(words)[1])
    )


def test_the_cause_is_that_of_the_pod_if_the_application_has_no_message() -> None:
    application, pod = spark_application(state="FAILED"), driver_pod(phase="Failed")
    ended = {"terminated": {"exitCode": 3, "reason": "Error"}}
    pod["status"]["containerStatuses"] = [{"name": "driver", "state": ended}]

    assert cause(application, [pod]) == "pod orders-1-driver: Error (exit code 3)"
    assert cause(application, []) == "no cause is known"
