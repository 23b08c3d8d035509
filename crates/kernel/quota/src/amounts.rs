//! Amounts by name: what Kubernetes calls a resource list.

use std::collections::BTreeMap;

use fairway_kernel_kinds::quantity::{self, Quantity};
use serde_json::{Map, Value};

/// Amounts of named resources, in the order of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, Quantity>);

impl Amounts {
    /// Reads a field such as `hard`; what is no quantity is left out.
    pub fn read(object: &Value, field: &str) -> Self {
        quantity::amounts(object, field)
            .filter_map(|(name, amount)| Some((name.to_owned(), amount?)))
            .collect()
    }

    /// As JSON, in canonical form.
    pub fn to_value(&self) -> Value {
        let entries = self
            .iter()
            .map(|(name, amount)| (name.to_owned(), amount.canonical().into()));
        Value::Object(entries.collect::<Map<_, _>>())
    }

    /// The amount of a resource.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    /// Whether there is an amount of a resource, even if it is nothing.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether no resource is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every resource with its amount.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Sets an amount.
    pub fn set(&mut self, name: impl Into<String>, amount: Quantity) {
        self.0.insert(name.into(), amount);
    }

    /// Sets a count of one.
    pub(crate) fn one(&mut self, name: impl Into<String>) {
        self.set(name, Quantity::from_int(1));
    }

    /// Adds one amount.
    pub(crate) fn add(&mut self, name: &str, amount: Quantity) {
        match self.0.get_mut(name) {
            Some(sum) => *sum = sum.plus(amount),
            None => self.set(name, amount),
        }
    }

    /// Adds amounts.
    pub fn add_all(&mut self, others: &Self) {
        for (name, amount) in others.iter() {
            self.add(name, amount);
        }
    }

    /// Raises each amount to that of the other list, where that is more.
    pub(crate) fn raise_to(&mut self, others: &Self) {
        for (name, amount) in others.iter() {
            if self.get(name).is_none_or(|have| amount > have) {
                self.set(name, amount);
            }
        }
    }

    /// What this is above the other list: never less than nothing, and without what is nothing.
    #[must_use]
    pub(crate) fn above(&self, others: &Self) -> Self {
        self.iter()
            .map(|(name, amount)| (name, others.get(name).map_or(amount, |other| amount.minus(other))))
            .filter(|(_, amount)| amount.sign() > 0)
            .map(|(name, amount)| (name.to_owned(), amount))
            .collect()
    }

    /// Without what is nothing.
    #[must_use]
    pub(crate) fn without_zeros(&self) -> Self {
        self.filtered(|_, amount| amount.sign() != 0)
    }

    /// Only the resources that satisfy a condition.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&str, Quantity) -> bool) -> Self {
        let kept = self.iter().filter(|(name, amount)| keep(name, *amount));
        kept.map(|(name, amount)| (name.to_owned(), amount)).collect()
    }

    /// `cpu=1,pods=2`: the form in which messages list amounts.
    pub(crate) fn sentence(&self) -> String {
        let parts: Vec<String> = self
            .iter()
            .map(|(name, amount)| format!("{name}={}", amount.canonical()))
            .collect();
        parts.join(",")
    }
}

impl FromIterator<(String, Quantity)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (String, Quantity)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}
