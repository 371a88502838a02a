//! The tree that an item is: dicts and lists of leaves, as PyTorch's pytree describes it.

use serde::Deserialize;
use windrow_core::{Error, Result};

/// A tree over the leaves of an item, which are counted depth first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// The leaf of this number.
    Leaf(usize),
    /// A list or a tuple.
    List(Vec<Tree>),
    /// A dict.
    Dict(Vec<(String, Tree)>),
}

#[derive(Deserialize)]
struct Node {
    #[serde(rename = "type")]
    kind: Option<String>,
    context: Option<String>,
    children_spec: Vec<Node>,
}

impl Tree {
    /// The tree that the text of `data_spec` describes: `[1, node]`.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported` for other classes than dicts, lists and tuples.
    pub(super) fn parse(text: &str) -> Result<Tree> {
        let (_, node): (u64, Node) = serde_json::from_str(text)
            .map_err(|cause| Error::corrupt("expected the tree of an item").caused_by(cause))?;
        let mut leaves = 0;
        Tree::of(node, &mut leaves)
    }

    fn of(node: Node, leaves: &mut usize) -> Result<Tree> {
        let Some(kind) = node.kind else {
            *leaves += 1;
            return if node.children_spec.is_empty() {
                Ok(Tree::Leaf(*leaves - 1))
            } else {
                Err(Error::corrupt("a leaf with children"))
            };
        };
        let children: Vec<Tree> =
            node.children_spec.into_iter().map(|child| Tree::of(child, leaves)).collect::<Result<_>>()?;
        match kind.rsplit('.').next().unwrap_or_default() {
            "list" | "tuple" => Ok(Tree::List(children)),
            "dict" | "OrderedDict" => {
                let keys: Vec<String> = serde_json::from_str(&node.context.unwrap_or_default())
                    .map_err(|cause| Error::unsupported("keys that are not texts").caused_by(cause))?;
                if keys.len() == children.len() {
                    Ok(Tree::Dict(keys.into_iter().zip(children).collect()))
                } else {
                    Err(Error::corrupt(format!("{} keys of {} values", keys.len(), children.len())))
                }
            }
            _ => {
                Err(Error::unsupported(format!("an item with a {kind}"))
                    .hint("dicts, lists and tuples are read"))
            }
        }
    }

    /// How many leaves it has.
    pub(super) fn leaves(&self) -> usize {
        match self {
            Tree::Leaf(_) => 1,
            Tree::List(children) => children.iter().map(Tree::leaves).sum(),
            Tree::Dict(children) => children.iter().map(|(_, child)| child.leaves()).sum(),
        }
    }
}
