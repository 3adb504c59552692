"""Publication forms: one file each, registered here."""

from anon_spark.publishing.anatomy import Anatomy
from anon_spark.publishing.form import PublicationForm
from anon_spark.publishing.generalized import Generalized
from anon_spark.publishing.microaggregated import Microaggregated

__all__ = ["FORMS", "Anatomy", "Generalized", "Microaggregated", "PublicationForm"]

FORMS: dict[str, type[PublicationForm]] = {
    form.name: form for form in (Generalized, Microaggregated, Anatomy)
}
