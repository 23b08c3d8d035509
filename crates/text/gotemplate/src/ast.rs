//! What a template means: its nodes, and their text as error messages quote it. Variables are places in the frame of
//! their template, functions are numbers in the table with which the template was parsed; both are settled once.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::value::Str;

/// A position in the text of the template, in bytes.
pub(crate) type Pos = u32;

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    pub(crate) name: Arc<str>,
    /// The name of the file that it is defined in.
    pub(crate) file: Arc<str>,
    /// The text of that file.
    pub(crate) text: Arc<str>,
    pub(crate) root: List,
    /// How many variables a frame holds.
    pub(crate) slots: usize,
}

pub(crate) type List = Vec<Node>;

#[derive(Debug)]
pub(crate) enum Node {
    /// A stretch of the file's text.
    Text(Pos, Pos),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template(Invocation),
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) list: List,
    pub(crate) otherwise: Option<List>,
}

#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) pos: Pos,
    pub(crate) name: Arc<str>,
    pub(crate) pipe: Option<Pipe>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) pos: Pos,
    pub(crate) assigns: bool,
    pub(crate) variables: Vec<Declared>,
    pub(crate) commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) name: Arc<str>,
    /// None for an assignment to a variable that does not exist.
    pub(crate) slot: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) pos: Pos,
    pub(crate) args: Vec<Operand>,
}

#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) pos: Pos,
    pub(crate) kind: OperandKind,
}

#[derive(Debug)]
pub(crate) enum OperandKind {
    Bool(bool),
    Dot,
    Nil,
    Number(Number),
    Str {
        quoted: Arc<str>,
        value: Str,
    },
    Field(Vec<Arc<str>>),
    Variable {
        name: Arc<str>,
        /// None within the pipeline that gives the variable its first value.
        slot: Option<usize>,
        fields: Vec<Arc<str>>,
    },
    Function {
        name: Arc<str>,
        index: usize,
    },
    Chain {
        start: Box<Operand>,
        fields: Vec<Arc<str>>,
    },
    Pipe(Box<Pipe>),
}

/// A number as it was written, and everything that it can stand for.
#[derive(Debug, Clone)]
pub(crate) struct Number {
    pub(crate) text: Arc<str>,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
}

impl Template {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it would print nothing but spaces. Such a definition does not replace another.
    pub(crate) fn is_blank(&self) -> bool {
        self.root.iter().all(|node| match node {
            Node::Text(start, end) => self.text[*start as usize..*end as usize]
                .trim_matches(crate::text::is_space)
                .is_empty(),
            _ => false,
        })
    }

    /// `file:line:column` of a position.
    pub(crate) fn location(&self, pos: Pos) -> String {
        let before = &self.text[..(pos as usize).min(self.text.len())];
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = match before.rfind('\n') {
            Some(at) => before.len() - at - 1,
            None => before.len(),
        };
        format!("{}:{line}:{column}", self.file)
    }
}

impl Display for Pipe {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, variable) in self.variables.iter().enumerate() {
            let separator = if at > 0 { ", " } else { "" };
            write!(f, "{separator}{}", variable.name)?;
        }
        if !self.variables.is_empty() {
            f.write_str(if self.assigns { " = " } else { " := " })?;
        }
        for (at, command) in self.commands.iter().enumerate() {
            let separator = if at > 0 { " | " } else { "" };
            write!(f, "{separator}{command}")?;
        }
        Ok(())
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, argument) in self.args.iter().enumerate() {
            let separator = if at > 0 { " " } else { "" };
            match &argument.kind {
                OperandKind::Pipe(pipe) => write!(f, "{separator}({pipe})")?,
                _ => write!(f, "{separator}{argument}")?,
            }
        }
        Ok(())
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let fields = |f: &mut Formatter<'_>, fields: &[Arc<str>]| {
            fields.iter().try_for_each(|field| write!(f, ".{field}"))
        };
        match &self.kind {
            OperandKind::Bool(value) => write!(f, "{value}"),
            OperandKind::Dot => f.write_str("."),
            OperandKind::Nil => f.write_str("nil"),
            OperandKind::Number(number) => f.write_str(&number.text),
            OperandKind::Str { quoted, .. } => f.write_str(quoted),
            OperandKind::Field(names) => fields(f, names),
            OperandKind::Variable {
                name, fields: names, ..
            } => {
                f.write_str(name)?;
                fields(f, names)
            }
            OperandKind::Function { name, .. } => f.write_str(name),
            OperandKind::Chain { start, fields: names } => {
                match &start.kind {
                    OperandKind::Pipe(pipe) => write!(f, "({pipe})")?,
                    _ => write!(f, "{start}")?,
                }
                fields(f, names)
            }
            OperandKind::Pipe(pipe) => write!(f, "{pipe}"),
        }
    }
}

impl Display for Invocation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{template {}", crate::text::quote(self.name.as_bytes()))?;
        if let Some(pipe) = &self.pipe {
            write!(f, " {pipe}")?;
        }
        f.write_str("}}")
    }
}
