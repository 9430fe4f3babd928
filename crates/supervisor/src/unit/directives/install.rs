//! The table of `[Install]`.

use super::draft::set;
use super::{Directive, Section, full, lists};

const S: Section = Section::Install;

pub(super) const TABLE: &[Directive] = &[
    full(
        S,
        "WantedBy",
        "list of units",
        "Enabling makes these units want this one",
        |draft, input| lists::install_names(&mut draft.install.wanted_by, input),
    ),
    full(
        S,
        "RequiredBy",
        "list of units",
        "Enabling makes these units require this one",
        |draft, input| lists::install_names(&mut draft.install.required_by, input),
    ),
    full(
        S,
        "UpheldBy",
        "list of units",
        "Enabling makes these units uphold this one",
        |draft, input| lists::install_names(&mut draft.install.upheld_by, input),
    ),
    full(
        S,
        "Also",
        "list of units",
        "Units enabled and disabled together with this one",
        |draft, input| lists::install_names(&mut draft.install.also, input),
    ),
    full(
        S,
        "Alias",
        "list of units",
        "Other names that the unit gets when it is enabled",
        |draft, input| lists::install_names(&mut draft.install.alias, input),
    ),
    full(
        S,
        "DefaultInstance",
        "text",
        "For templates: the instance that is enabled when none is named",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.install.default_instance,
                |input| input.text().map(Some),
            )
        },
    ),
];
