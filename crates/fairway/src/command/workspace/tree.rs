//! `fairway workspace tree`: the current workspace and everything below it.

use std::process::ExitCode;

use anyhow::Context;
use fairway_kernel_tenancy::WorkspacePath;

use super::server::{Server, is_code, name, told};
use crate::cli::workspace::Tree;

/// A workspace in the tree.
struct Node {
    label: String,
    children: Vec<Node>,
}

/// Shows it.
pub(super) async fn run(options: &Tree) -> anyhow::Result<ExitCode> {
    let server = Server::find(&options.place).await?;
    let root = grow(&server, &server.here.path, options.full).await?;
    println!(".");
    print!("{}", draw(&[root], ""));
    Ok(ExitCode::SUCCESS)
}

/// Reads a workspace and what is below it. Nothing nests deeper than a path may be long.
async fn grow(server: &Server, path: &WorkspacePath, full: bool) -> anyhow::Result<Node> {
    let is_top = *path == server.here.path;
    let label = if full { path.as_str() } else { path.base() };
    let mut node = Node {
        label: label.to_owned(),
        children: Vec::new(),
    };
    let children = match server.list(path).await {
        Ok(children) => children,
        // One may see that a workspace is there without being let in.
        Err(error) if !is_top && is_code(&error, 403) => {
            node.label.push_str(" (no access)");
            return Ok(node);
        }
        Err(error) if !is_top && is_code(&error, 404) => return Ok(node),
        Err(error) => {
            return Err(told(error)).with_context(|| format!("the workspaces in {path} could not be listed"));
        }
    };
    for child in children {
        let is_going = child.metadata.deletion_timestamp.is_some();
        let Ok(below) = path.join(name(&child)) else {
            continue;
        };
        if is_going {
            continue;
        }
        if child.data["spec"]["mount"].is_object() {
            let label = if full { below.as_str() } else { below.base() };
            node.children.push(Node {
                label: format!("{label} [m]"),
                children: Vec::new(),
            });
            continue;
        }
        node.children.push(Box::pin(grow(server, &below, full)).await?);
    }
    Ok(node)
}

fn draw(nodes: &[Node], indent: &str) -> String {
    let mut drawn = String::new();
    for (place, node) in nodes.iter().enumerate() {
        let (branch, below) = if place + 1 == nodes.len() {
            ("└── ", "    ")
        } else {
            ("├── ", "│   ")
        };
        drawn.push_str(&format!("{indent}{branch}{}\n", node.label));
        drawn.push_str(&draw(&node.children, &format!("{indent}{below}")));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches() {
        let leaf = |label: &str| Node {
            label: label.to_owned(),
            children: Vec::new(),
        };
        let tree = Node {
            label: "root".to_owned(),
            children: vec![
                Node {
                    label: "acme".to_owned(),
                    children: vec![leaf("a"), leaf("b")],
                },
                leaf("other"),
            ],
        };
        assert_eq!(
            draw(&[tree], ""),
            "└── root\n    ├── acme\n    │   ├── a\n    │   └── b\n    └── other\n"
        );
    }
}
