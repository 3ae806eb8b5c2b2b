"""The custom resource as pydantic models.

The one source of the CRD, of defaults and of validation.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, ValidationError

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.contract.base import Model, rule, with_rules
from balanced_source_operator.contract.errors import in_words
from balanced_source_operator.spec.application import CONF_KEY, IMAGE, PROGRAM, Application
from balanced_source_operator.spec.assignment import AssignmentSpec, Rebalance, Strategy
from balanced_source_operator.spec.autoscaling import Autoscaling
from balanced_source_operator.spec.restarts import Restart
from balanced_source_operator.spec.source import BRANCHES, Source
from balanced_source_operator.spec.spark_values import MEMORY
from balanced_source_operator.spec.spark_values import VERSION as SPARK_VERSION
from balanced_source_operator.spec.status import Condition, Status

GROUP = "balancedsource.io"
VERSION = "v1alpha1"
KIND = "BalancedSource"
PLURAL = "balancedsources"

WORDS: Final[Mapping[str, str]] = {
    CONF_KEY: "a Spark setting, whose name begins with spark.",
    IMAGE: "the reference of an image, without blanks",
    MEMORY: "an amount of memory such as 512m or 4g",
    PROGRAM: "a path or URL without blanks",
    SPARK_VERSION: "a version such as 4.2.0",
    **{pattern: words for half in BRANCHES.values() for pattern, words in half.words.items()},
}
"""What a pattern asks for."""


NO_COLUMNS: Final = "names columns that rows of this kind of source do not have"

NO_HOSTS: Final = (
    "hosts cannot be used with this kind of source, which one application reads: remove hosts"
)


NO_BLUE_GREEN: Final = (
    "restart.strategy BlueGreen cannot be used with this kind of source, which one application"
    " reads: use Recreate"
)


class BalancedSourceSpec(Model):
    """The desired state of a source."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            *(
                rule(f"!has(self.source.{kind}) || {needed}", words)
                for needed, words in (
                    ("!has(self.application.hosts)", NO_HOSTS),
                    ("self.application.restart.strategy != 'BlueGreen'", NO_BLUE_GREEN),
                )
                for kind, half in BRANCHES.items()
                if not half.can_have_hosts
            ),
            *(
                rule(text, f"pipeline.columns {NO_COLUMNS}")
                for kind, half in BRANCHES.items()
                for text in half.columns_rules(kind)
            ),
        )
    )

    parallelism: Annotated[int, Field(ge=1, le=1000)] = 1
    """Number of readers.

    A change takes effect while the query runs. With `autoscaling` the operator changes it.
    """

    autoscaling: Autoscaling | None = None
    """Lets the operator choose the number of readers. Absent: parallelism stays as it is."""

    assignment: AssignmentSpec = AssignmentSpec()
    """How splits are assigned to readers."""

    rebalance_nonce: Annotated[int, Field(ge=0, le=2147483647)] = 0
    """Change this value to trigger a rebalance immediately, regardless of the rebalance mode."""

    source: Source
    """The source to read."""

    application: Application
    """The Spark application that reads the source."""

    restart: Restart = Restart()
    """When a failed application is started again."""

    suspend: bool = False
    """Stops the application and keeps all positions. When it is set back to false, reading
    continues from there."""


def parse_spec(raw: Any) -> BalancedSourceSpec:
    """The spec of a resource.

    Raises:
        InvalidSpecError: what the API server could not check, or a resource older than its CRD.
            Names the fields.
    """
    try:
        return BalancedSourceSpec.model_validate(raw)
    except ValidationError as error:
        place, message = in_words(error, WORDS)
        raise InvalidSpecError(message, field=".".join(filter(None, ["spec", place]))) from error


__all__ = [
    "GROUP",
    "KIND",
    "NO_BLUE_GREEN",
    "NO_COLUMNS",
    "NO_HOSTS",
    "PLURAL",
    "VERSION",
    "WORDS",
    "Application",
    "AssignmentSpec",
    "Autoscaling",
    "BalancedSourceSpec",
    "Condition",
    "Model",
    "Rebalance",
    "Restart",
    "Source",
    "Status",
    "Strategy",
    "parse_spec",
]
