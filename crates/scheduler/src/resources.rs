//! What pods ask for and nodes have, as numbers: processor in thousandths, the rest in units.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::{
    quantity::Amount,
    text::{Text, Texts},
};

pub(crate) const CPU: &str = "cpu";
pub(crate) const MEMORY: &str = "memory";
pub(crate) const STORAGE: &str = "ephemeral-storage";
pub(crate) const PODS: &str = "pods";

/// What counts as asked for when nothing is, so that empty pods do not all go to one node.
const LEAST_CPU: i64 = 100;
const LEAST_MEMORY: i64 = 200 * 1024 * 1024;

/// Amounts of each resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) storage: i64,
    /// Huge pages and what devices offer, sorted by name.
    pub(crate) others: Vec<(Text, i64)>,
}

type Quantities = BTreeMap<String, Quantity>;

/// An amount that cannot be read fits nowhere; the API lets none in.
fn amount(quantity: &Quantity, read: impl FnOnce(Amount) -> i64) -> i64 {
    Amount::parse(&quantity.0).map_or(i64::MAX, read)
}

impl Resources {
    pub(crate) fn of(quantities: Option<&Quantities>, texts: &mut Texts) -> Self {
        let mut resources = Self::default();
        for (name, quantity) in quantities.into_iter().flatten() {
            match name.as_str() {
                CPU => resources.cpu = amount(quantity, Amount::thousandths),
                MEMORY => resources.memory = amount(quantity, Amount::units),
                STORAGE => resources.storage = amount(quantity, Amount::units),
                PODS => {}
                _ => {
                    let units = amount(quantity, Amount::units);
                    resources.others.push((texts.keep(name), units));
                }
            }
        }
        resources
    }

    /// The same, where nothing asked for counts as a little.
    pub(crate) fn at_least_a_little(mut self, quantities: Option<&Quantities>) -> Self {
        let has = |name| quantities.is_some_and(|all| all.contains_key(name));
        if !has(CPU) {
            self.cpu = LEAST_CPU;
        }
        if !has(MEMORY) {
            self.memory = LEAST_MEMORY;
        }
        self
    }

    pub(crate) fn other(&self, name: &Text) -> i64 {
        let found = self.others.binary_search_by(|(known, _)| known.cmp(name));
        found.map_or(0, |place| self.others[place].1)
    }

    fn combine(&mut self, with: &Self, merge: impl Fn(i64, i64) -> i64) {
        self.cpu = merge(self.cpu, with.cpu);
        self.memory = merge(self.memory, with.memory);
        self.storage = merge(self.storage, with.storage);
        for (name, amount) in &with.others {
            match self.others.binary_search_by(|(known, _)| known.cmp(name)) {
                Ok(place) => self.others[place].1 = merge(self.others[place].1, *amount),
                Err(place) => self.others.insert(place, (name.clone(), merge(0, *amount))),
            }
        }
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.combine(more, i64::saturating_add);
    }

    pub(crate) fn subtract(&mut self, less: &Self) {
        self.combine(less, i64::saturating_sub);
        self.others.retain(|(_, amount)| *amount != 0);
    }

    /// The larger of both, for each resource.
    pub(crate) fn raise(&mut self, to: &Self) {
        self.combine(to, i64::max);
    }
}
