//! Sets of field paths, as sorted trees.
//!
//! A node may be a member, have members below it, or both; a node that is neither does not exist, which makes
//! equality structural. Nodes are sorted, so that every operation on two sets is one pass over both.

use std::cmp::Ordering;

use fairway_kernel_schema::shape::{ShapeId, Shapes};

use super::{Path, PathElement};

/// A set of field paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Set {
    pub(crate) nodes: Vec<Node>,
}

/// A step of the paths in a set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) element: PathElement,
    /// The path that ends here is in the set.
    pub(crate) member: bool,
    /// Paths that lead on from here.
    pub(crate) children: Set,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.nodes.is_empty()
    }
}

impl Set {
    /// The empty set.
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// The set of these paths, each made of field names only.
    pub fn from_paths(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&Path::of_fields(path));
        }
        set
    }

    /// Adds a path. The paths that lead to it are not added.
    pub fn insert(&mut self, path: &Path) {
        let Some((last, parents)) = path.0.split_last() else {
            return; // nobody owns the whole object
        };
        let mut set = self;
        for element in parents {
            set = &mut set.entry(element).children;
        }
        set.entry(last).member = true;
    }

    fn entry(&mut self, element: &PathElement) -> &mut Node {
        let at = match self.nodes.binary_search_by(|node| node.element.cmp(element)) {
            Ok(at) => at,
            Err(at) => {
                self.nodes.insert(
                    at,
                    Node {
                        element: element.clone(),
                        member: false,
                        children: Self::new(),
                    },
                );
                at
            }
        };
        &mut self.nodes[at]
    }

    /// Whether there are no paths in it.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| usize::from(node.member) + node.children.len())
            .sum()
    }

    /// Whether the path is in the set.
    pub fn has(&self, path: &Path) -> bool {
        let Some((last, parents)) = path.0.split_last() else {
            return false;
        };
        let mut set = self;
        for element in parents {
            match set.get(|e| e.cmp(element)) {
                Some(node) => set = &node.children,
                None => return false,
            }
        }
        set.get(|e| e.cmp(last)).is_some_and(|node| node.member)
    }

    /// The node that `order` finds equal.
    pub(crate) fn get(&self, order: impl Fn(&PathElement) -> Ordering) -> Option<&Node> {
        self.nodes
            .binary_search_by(|node| order(&node.element))
            .ok()
            .map(|at| &self.nodes[at])
    }

    /// The node of a field.
    pub(crate) fn get_field(&self, name: &str) -> Option<&Node> {
        self.get(|element| match element {
            PathElement::Field(field) => field.as_bytes().cmp(name.as_bytes()),
            _ => Ordering::Greater,
        })
    }

    /// Paths in either set.
    pub fn union(&self, other: &Self) -> Self {
        merge_walk(self, other, |left, right| match (left, right) {
            (Some(l), Some(r)) => Some(Node {
                element: l.element.clone(),
                member: l.member || r.member,
                children: l.children.union(&r.children),
            }),
            (one, other) => one.or(other).cloned(),
        })
    }

    /// Paths in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        merge_walk(self, other, |left, right| match (left, right) {
            (Some(l), Some(r)) => Some(Node {
                element: l.element.clone(),
                member: l.member && r.member,
                children: l.children.intersection(&r.children),
            }),
            _ => None,
        })
    }

    /// Paths in this set that are not in the other; a path in the other does not take those below it.
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        merge_walk(self, other, |left, right| match (left, right) {
            (Some(l), Some(r)) => Some(Node {
                element: l.element.clone(),
                member: l.member && !r.member,
                children: l.children.difference(&r.children),
            }),
            (l, _) => l.cloned(),
        })
    }

    /// Like [`Set::union`], for sets of which one is often empty.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => self.union(&other),
        }
    }

    /// Like [`Set::difference`], in place.
    pub fn subtract(&mut self, other: &Self) {
        let mut taken = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while taken.next_if(|t| t.element < node.element).is_some() {}
            if let Some(t) = taken.next_if(|t| t.element == node.element) {
                node.member &= !t.member;
                node.children.subtract(&t.children);
            }
            !node.is_empty()
        });
    }

    /// Paths in this set that are neither in the other nor below one that is.
    pub fn recursive_difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        merge_walk(self, other, |left, right| match (left, right) {
            (Some(_), Some(r)) if r.member => None,
            (Some(l), Some(r)) => Some(Node {
                element: l.element.clone(),
                member: l.member,
                children: l.children.recursive_difference(&r.children),
            }),
            (l, _) => l.cloned(),
        })
    }

    /// Whether every path of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut candidates = other.nodes.iter();
        self.nodes.iter().all(|node| {
            candidates
                .by_ref()
                .find(|candidate| candidate.element >= node.element)
                .is_some_and(|found| {
                    found.element == node.element
                        && (found.member || !node.member)
                        && node.children.is_subset(&found.children)
                })
        })
    }

    /// The set and every declared field that leads to one of its paths.
    ///
    /// Fields of a struct are members only if they are leaves, entries of a map always; removing what a manager owned
    /// must treat both alike.
    pub fn with_named_fields(&self, shapes: &Shapes, shape: Option<ShapeId>) -> Self {
        let atom = shape.map(|id| shapes.get(id));
        let map = atom.and_then(|a| a.map.as_ref());
        let list = atom.and_then(|a| a.list.as_ref());
        let nodes = self
            .nodes
            .iter()
            .map(|node| {
                let (declared, child) = match (&node.element, map, list) {
                    (PathElement::Field(name), Some(map), _) => {
                        let field = map.field(name.as_str());
                        (field.is_some(), field.map(|f| f.shape).or(map.element))
                    }
                    (PathElement::Key(_), _, Some(list)) => (false, Some(list.element)),
                    _ => (false, None),
                };
                Node {
                    element: node.element.clone(),
                    member: node.member || (declared && !node.children.is_empty()),
                    children: node.children.with_named_fields(shapes, child),
                }
            })
            .collect();
        Self { nodes }
    }

    /// The paths that lead to no other path of the set.
    pub fn leaves(&self) -> Self {
        let nodes = self
            .nodes
            .iter()
            .map(|node| Node {
                element: node.element.clone(),
                member: node.member && node.children.is_empty(),
                children: node.children.leaves(),
            })
            .collect();
        Self { nodes }
    }

    /// Calls `visit` with every path: those that end at a level before those that lead on from it.
    pub fn for_each(&self, visit: &mut dyn FnMut(&Path)) {
        self.for_each_below(&mut Path::default(), visit);
    }

    fn for_each_below(&self, prefix: &mut Path, visit: &mut dyn FnMut(&Path)) {
        for node in self.nodes.iter().filter(|node| node.member) {
            prefix.0.push(node.element.clone());
            visit(prefix);
            prefix.0.pop();
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            prefix.0.push(node.element.clone());
            node.children.for_each_below(prefix, visit);
            prefix.0.pop();
        }
    }

    /// All paths, in the order of [`Set::for_each`].
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.for_each(&mut |path| paths.push(path.clone()));
        paths
    }
}

/// Walks two sorted sets together and keeps what `combine` makes of each node.
fn merge_walk(
    left: &Set,
    right: &Set,
    combine: impl Fn(Option<&Node>, Option<&Node>) -> Option<Node>,
) -> Set {
    let mut nodes = Vec::with_capacity(left.nodes.len());
    let (mut l, mut r) = (left.nodes.iter().peekable(), right.nodes.iter().peekable());
    loop {
        let order = match (l.peek(), r.peek()) {
            (None, None) => return Set { nodes },
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(left), Some(right)) => left.element.cmp(&right.element),
        };
        let combined = match order {
            Ordering::Less => combine(l.next(), None),
            Ordering::Greater => combine(None, r.next()),
            Ordering::Equal => combine(l.next(), r.next()),
        };
        nodes.extend(combined.filter(|node| !node.is_empty()));
    }
}

/// What a walk found at one value: whether its own path is in the set, and the paths below it.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) member: bool,
    pub(crate) children: Set,
}

/// Collects the nodes of one level in any order; sorting once keeps long lists from costing quadratic time.
#[derive(Default)]
pub(crate) struct SetBuilder {
    nodes: Vec<Node>,
    unsorted: bool,
}

impl SetBuilder {
    /// Adds what was found below the current level. `element` is made only if there is something to add.
    pub(crate) fn push(&mut self, element: impl FnOnce() -> PathElement, part: Part) {
        if !part.member && part.children.is_empty() {
            return;
        }
        let node = Node {
            element: element(),
            member: part.member,
            children: part.children,
        };
        self.unsorted |= self.nodes.last().is_some_and(|last| last.element >= node.element);
        self.nodes.push(node);
    }

    /// The set.
    pub(crate) fn finish(self) -> Set {
        let mut nodes = self.nodes;
        if self.unsorted {
            nodes.sort_by(|l, r| l.element.cmp(&r.element));
            nodes.dedup_by(|next, kept| {
                let same = next.element == kept.element;
                if same {
                    kept.member |= next.member;
                    kept.children = kept.children.union(&next.children);
                }
                same
            });
        }
        Set { nodes }
    }
}

#[cfg(test)]
mod tests;
