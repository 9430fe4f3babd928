//! Sets of fields, as trees of steps.
//!
//! Entries are sorted and each holds something: it is a member, or something below it is.

use serde_json::{Map, Value};

use super::{element::Element, scope::ANY};

/// The fields of an object that somebody owns, or that changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    element: Element,
    node: Node,
}

/// What a set says of one place: whether it is a member, and what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

impl Node {
    pub(super) fn member() -> Self {
        Self {
            member: true,
            below: FieldSet::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// The set of these paths of fields, like `["metadata", "name"]`.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let mut place = &mut set;
            for (index, name) in path.iter().enumerate() {
                let node = place.node_mut(Element::Field((*name).to_owned()));
                node.member |= index + 1 == path.len();
                place = &mut node.below;
            }
        }
        set
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The set of these steps, in any order. What is said of one step twice is united.
    pub(super) fn of_steps(steps: Vec<(Element, Node)>) -> Self {
        let mut entries: Vec<Entry> = steps
            .into_iter()
            .filter(|(_, node)| !node.is_empty())
            .map(|(element, node)| Entry { element, node })
            .collect();
        entries.sort_by(|a, b| a.element.cmp(&b.element));
        entries.dedup_by(|next, kept| {
            let same = next.element == kept.element;
            if same {
                kept.node.member |= next.node.member;
                kept.node.below = kept.node.below.union(&next.node.below);
            }
            same
        });
        Self { entries }
    }

    fn node_mut(&mut self, element: Element) -> &mut Node {
        let place = match self.find(&element) {
            Ok(place) => place,
            Err(place) => {
                let node = Node::default();
                self.entries.insert(place, Entry { element, node });
                place
            }
        };
        &mut self.entries[place].node
    }

    fn find(&self, element: &Element) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| entry.element.cmp(element))
    }

    pub(super) fn get(&self, element: &Element) -> Option<&Node> {
        self.find(element)
            .ok()
            .map(|place| &self.entries[place].node)
    }

    /// What is said of a field, without making a step for the question.
    pub(super) fn field(&self, name: &str) -> Option<&Node> {
        self.entries
            .binary_search_by(|entry| match &entry.element {
                Element::Field(field) => field.as_str().cmp(name),
                _ => std::cmp::Ordering::Greater,
            })
            .ok()
            .map(|place| &self.entries[place].node)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Element, &Node)> {
        self.entries
            .iter()
            .map(|entry| (&entry.element, &entry.node))
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut set = Self::default();
        let mut others = other.entries.iter().peekable();
        for entry in &self.entries {
            while let Some(other) = others.next_if(|other| other.element < entry.element) {
                set.entries.push(other.clone());
            }
            let mut entry = entry.clone();
            if let Some(other) = others.next_if(|other| other.element == entry.element) {
                entry.node.member |= other.node.member;
                entry.node.below = entry.node.below.union(&other.node.below);
            }
            set.entries.push(entry);
        }
        set.entries.extend(others.cloned());
        set
    }

    /// Whether some field is a member of both.
    pub fn touches(&self, other: &Self) -> bool {
        self.iter().any(|(element, node)| {
            other.get(element).is_some_and(|other| {
                (node.member && other.member) || node.below.touches(&other.below)
            })
        })
    }

    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.keep(|element, node| {
            let other = other.get(element)?;
            Some(Node {
                member: node.member && other.member,
                below: node.below.intersection(&other.below),
            })
        })
    }

    /// The members that are not members of the other set. What is below a member of the other set stays.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.keep(|element, node| match other.get(element) {
            None => Some(node.clone()),
            Some(other) => Some(Node {
                member: node.member && !other.member,
                below: node.below.difference(&other.below),
            }),
        })
    }

    /// The members that neither are members of the other set nor below one.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.keep(|element, node| match other.get(element) {
            None => Some(node.clone()),
            Some(other) if other.member => None,
            Some(other) => Some(Node {
                member: node.member,
                below: node.below.without(&other.below),
            }),
        })
    }

    /// The members at these paths, or below them; [`ANY`] stands for any step.
    #[must_use]
    pub(super) fn only(&self, paths: &[&[&str]]) -> Self {
        self.keep(|element, node| {
            let leads = |step: &str| match element {
                Element::Field(name) => step == name || step == ANY,
                _ => step == ANY,
            };
            let rest: Vec<&[&str]> = paths
                .iter()
                .filter_map(|path| path.split_first())
                .filter(|(step, _)| leads(step))
                .map(|(_, rest)| rest)
                .collect();
            if rest.iter().any(|rest| rest.is_empty()) {
                return Some(node.clone());
            }
            Some(Node {
                member: false,
                below: node.below.only(&rest),
            })
        })
    }

    fn keep(&self, choose: impl Fn(&Element, &Node) -> Option<Node>) -> Self {
        let entries = self.entries.iter().filter_map(|entry| {
            let node = choose(&entry.element, &entry.node)?;
            let element = entry.element.clone();
            (!node.is_empty()).then_some(Entry { element, node })
        });
        Self {
            entries: entries.collect(),
        }
    }

    /// The paths of all members, `.spec.ports[port=80]`: those of one level before what is below them.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        for entry in self.entries.iter().filter(|entry| entry.node.member) {
            paths.push(format!("{prefix}{}", entry.element));
        }
        for entry in &self.entries {
            if !entry.node.below.is_empty() {
                let prefix = format!("{prefix}{}", entry.element);
                entry.node.below.collect_paths(&prefix, paths);
            }
        }
    }

    /// Reads `fieldsV1`.
    pub fn decode(fields: &Value) -> Option<Self> {
        let fields = fields.as_object()?;
        let mut steps = Vec::with_capacity(fields.len());
        for (name, below) in fields {
            // Membership of the place itself is read one level above; at the top it has no meaning.
            if name == "." {
                continue;
            }
            let inner = Self::decode(below)?;
            let own = below.get(".").is_some() || inner.is_empty();
            let node = Node {
                member: own,
                below: inner,
            };
            steps.push((Element::decode(name)?, node));
        }
        Some(Self::of_steps(steps))
    }

    /// Writes `fieldsV1`.
    pub fn encode(&self) -> Value {
        self.encode_with(false)
    }

    fn encode_with(&self, own: bool) -> Value {
        let mut fields = Map::new();
        if own {
            fields.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, node) in self.iter() {
            let own = node.member && !node.below.is_empty();
            fields.insert(element.encode(), node.below.encode_with(own));
        }
        Value::Object(fields)
    }
}
