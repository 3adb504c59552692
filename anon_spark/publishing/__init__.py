"""Publication forms: one file each, registered here."""

from anon_spark.publishing.generalized import Generalized

PublicationForm = Generalized

FORMS: dict[str, type[PublicationForm]] = {form.name: form for form in (Generalized,)}
