"""Publication forms: one file each, registered here."""

from anon_spark.publishing.anatomy import Anatomy
from anon_spark.publishing.form import PublicationForm
from anon_spark.publishing.generalized import Generalized
from anon_spark.publishing.microaggregated import Microaggregated
from anon_spark.publishing.sliced import Sliced

__all__ = ["FORMS", "Anatomy", "Generalized", "Microaggregated", "PublicationForm", "Sliced"]

FORMS: dict[str, type[PublicationForm]] = {
    form.name: form for form in (Generalized, Microaggregated, Anatomy, Sliced)
}
