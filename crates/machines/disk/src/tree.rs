//! A directory tree as a value.

use std::collections::BTreeMap;

use bytes::Bytes;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A directory.
    Directory,
    /// A file.
    File(Bytes),
    /// A symbolic link.
    Symlink(String),
}

/// What is at a path, whose it is, and who may do what with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Permission bits with setuid, setgid and sticky.
    pub mode: u16,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// What it is.
    pub content: Content,
}

impl Node {
    /// A node of root's.
    pub fn new(mode: u16, content: Content) -> Self {
        Self {
            mode,
            uid: 0,
            gid: 0,
            content,
        }
    }

    /// The file type and the permission bits as in `st_mode`.
    pub fn full_mode(&self) -> u16 {
        let kind = match self.content {
            Content::Directory => 0o040_000,
            Content::File(_) => 0o100_000,
            Content::Symlink(_) => 0o120_000,
        };
        kind | (self.mode & 0o7777)
    }
}

/// Nodes by path, without a leading slash. The root itself is not among them; parents are made as they are needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
}

impl Tree {
    /// Puts a file of root's, in place of what was there.
    pub fn file(&mut self, path: &str, mode: u16, content: impl Into<Bytes>) {
        self.put(path, Node::new(mode, Content::File(content.into())));
    }

    /// Makes a directory, or changes its mode.
    pub fn directory(&mut self, path: &str, mode: u16) {
        self.put(path, Node::new(mode, Content::Directory));
    }

    /// Puts a symbolic link, in place of what was there.
    pub fn symlink(&mut self, path: &str, target: &str) {
        self.put(path, Node::new(0o777, Content::Symlink(target.to_owned())));
    }

    /// Puts a node, in place of what was there, with directories above it.
    pub fn put(&mut self, path: &str, node: Node) {
        let path = normal(path);
        if path.is_empty() {
            return;
        }
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('/') {
            self.nodes
                .entry(parent.to_owned())
                .or_insert_with(|| Node::new(0o755, Content::Directory));
            above = parent;
        }
        self.nodes.insert(path, node);
    }

    /// What is at a path.
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(&normal(path))
    }

    /// The bytes of the file at a path.
    pub fn bytes(&self, path: &str) -> Option<&Bytes> {
        match &self.get(path)?.content {
            Content::File(bytes) => Some(bytes),
            Content::Directory | Content::Symlink(_) => None,
        }
    }

    /// Path and node of the file at a path, through symbolic links; `None` after too many of them.
    pub fn resolve(&self, path: &str) -> Option<(String, &Bytes)> {
        let mut path = normal(path);
        for _ in 0..16 {
            match &self.nodes.get(&path)?.content {
                Content::File(bytes) => return Some((path, bytes)),
                Content::Directory => return None,
                Content::Symlink(target) if target.starts_with('/') => path = normal(target),
                Content::Symlink(target) => {
                    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                    path = normal(&format!("{parent}/{target}"));
                }
            }
        }
        None
    }

    /// All nodes, parents before what is in them.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Name and node of everything in a directory; the root is `""`.
    pub fn children<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = (&'a str, &'a Node)> {
        let prefix = match directory {
            "" => String::new(),
            directory => format!("{directory}/"),
        };
        let length = prefix.len();
        self.nodes
            .range(prefix.clone()..)
            .take_while(move |(path, _)| path.starts_with(&prefix))
            .map(move |(path, node)| (&path[length..], node))
            .filter(|(name, _)| !name.is_empty() && !name.contains('/'))
    }
}

/// A path without a leading slash, `.` and `..`; what would lead out of the root stays in it.
fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_first_and_links_lead_on() {
        let mut tree = Tree::default();
        tree.file("/usr/lib/a.so.1.2", 0o644, "x");
        tree.symlink("usr/lib/a.so.1", "a.so.1.2");
        tree.symlink("lib/a.so", "/usr/lib/../lib/a.so.1");
        tree.symlink("loop", "loop");
        let paths: Vec<&str> = tree.nodes().map(|(path, _)| path).collect();
        assert_eq!(
            paths,
            [
                "lib",
                "lib/a.so",
                "loop",
                "usr",
                "usr/lib",
                "usr/lib/a.so.1",
                "usr/lib/a.so.1.2"
            ]
        );
        let resolved = tree.resolve("lib/a.so").map(|(path, _)| path);
        assert_eq!(resolved.as_deref(), Some("usr/lib/a.so.1.2"));
        assert_eq!(tree.resolve("loop"), None);
        assert_eq!(tree.resolve("usr"), None);
        let names: Vec<&str> = tree.children("usr/lib").map(|(name, _)| name).collect();
        assert_eq!(names, ["a.so.1", "a.so.1.2"]);
        let names: Vec<&str> = tree.children("").map(|(name, _)| name).collect();
        assert_eq!(names, ["lib", "loop", "usr"]);
    }

    #[test]
    fn nothing_leaves_the_root() {
        let mut tree = Tree::default();
        tree.file("../../etc/x", 0o644, "x");
        assert!(tree.get("etc/x").is_some());
    }
}
