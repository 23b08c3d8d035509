//! What a template means: its nodes, and their text as error messages quote it. Variables are places in the frame of
//! their template, functions are numbers in the table with which the template was parsed; both are settled once.
//!
//! The parts of a file's templates lie in a few lists, one for each kind of part, and refer to each other by number
//! ([`Code`]). Charts have tens of thousands of parts, most of which are never executed: so reading them takes few
//! allocations, and letting go of them as few. Names are stretches of the file's text for the same reason.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::text::lossy;
use crate::value::Str;

/// A position in the text of the template, in bytes.
pub(crate) type Pos = u32;

/// A stretch of the text, or of one of the lists of a [`Code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// Texts and their lists are bounded far below 4 GiB.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let bounded = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            start: bounded(start),
            end: bounded(end),
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    pub(crate) name: Arc<str>,
    pub(crate) code: Arc<Code>,
    pub(crate) root: Span,
    /// How many variables a frame holds.
    pub(crate) slots: usize,
}

/// The parts of all templates of a file.
#[derive(Debug)]
pub(crate) struct Code {
    /// The name of the file.
    pub(crate) file: Arc<str>,
    /// Its text, which is UTF-8.
    pub(crate) text: Arc<[u8]>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) invocations: Vec<Invocation>,
    pub(crate) pipes: Vec<Pipe>,
    pub(crate) variables: Vec<Declared>,
    pub(crate) commands: Vec<Command>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) numbers: Vec<Number>,
    pub(crate) literals: Vec<Literal>,
}

/// The place of a pipeline among those of its file.
pub(crate) type PipeId = u32;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Node {
    /// A stretch of the file's text.
    Text(Span),
    /// An action that is nothing but a string in which the text stands as it is.
    Literal(Span),
    Action(PipeId),
    If(Branch),
    With(Branch),
    Range(Branch),
    /// The place of an invocation among those of its file.
    Template(u32),
    Break,
    Continue,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Branch {
    pub(crate) pipe: PipeId,
    pub(crate) list: Span,
    /// Empty if there is none: it does as much.
    pub(crate) otherwise: Span,
}

#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) pos: Pos,
    pub(crate) name: Arc<str>,
    pub(crate) pipe: Option<PipeId>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pipe {
    pub(crate) pos: Pos,
    pub(crate) assigns: bool,
    /// Among the variables of the file.
    pub(crate) variables: Span,
    /// Among the commands of the file.
    pub(crate) commands: Span,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Declared {
    /// In the text.
    pub(crate) name: Span,
    /// None for an assignment to a variable that does not exist.
    pub(crate) slot: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub(crate) pos: Pos,
    /// Among the operands of the file.
    pub(crate) args: Span,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand {
    pub(crate) pos: Pos,
    /// Its own text; of a chain, that of the fields.
    pub(crate) text: Span,
    pub(crate) kind: OperandKind,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum OperandKind {
    Bool(bool),
    Dot,
    Nil,
    /// Among the numbers of the file.
    Number(u32),
    /// Among the literals of the file.
    Str(u32),
    /// Names with a dot before each: the text.
    Field,
    Variable {
        /// None within the pipeline that gives the variable its first value.
        slot: Option<u32>,
        /// Where in the text its name ends and fields begin.
        name_end: Pos,
    },
    /// Among the functions.
    Function(u32),
    /// Fields of what an operand gives, which lies among those of the file.
    Chain(u32),
    Pipe(PipeId),
}

/// Everything that a number can stand for.
#[derive(Debug, Clone)]
pub(crate) struct Number {
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
}

/// A string. One without escapes is what stands between its quotes, and is copied when it is first wanted.
#[derive(Debug)]
pub(crate) struct Literal {
    pub(crate) content: Span,
    pub(crate) value: OnceLock<Str>,
}

impl Template {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it would print nothing but spaces. Such a definition does not replace another.
    pub(crate) fn is_blank(&self) -> bool {
        self.code.is_blank(self.root)
    }
}

/// The names in a stretch of text like `.a.b`.
pub(crate) fn field_names(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'.').skip(1)
}

impl Code {
    /// With room for the parts of so many actions.
    pub(crate) fn new(file: Arc<str>, text: Arc<[u8]>, actions: usize) -> Self {
        Self {
            file,
            text,
            nodes: Vec::with_capacity(2 * actions + 1),
            invocations: Vec::new(),
            pipes: Vec::with_capacity(actions),
            variables: Vec::new(),
            commands: Vec::with_capacity(actions + actions / 4),
            operands: Vec::with_capacity(2 * actions),
            numbers: Vec::new(),
            literals: Vec::new(),
        }
    }

    /// A stretch of the text.
    pub(crate) fn slice(&self, span: Span) -> &[u8] {
        &self.text[span.range()]
    }

    pub(crate) fn pipe(&self, id: PipeId) -> &Pipe {
        &self.pipes[id as usize]
    }

    pub(crate) fn variables(&self, pipe: &Pipe) -> &[Declared] {
        &self.variables[pipe.variables.range()]
    }

    pub(crate) fn commands(&self, pipe: &Pipe) -> &[Command] {
        &self.commands[pipe.commands.range()]
    }

    pub(crate) fn args(&self, command: &Command) -> &[Operand] {
        &self.operands[command.args.range()]
    }

    /// The value of a string.
    pub(crate) fn literal(&self, at: u32) -> Str {
        let literal = &self.literals[at as usize];
        literal
            .value
            .get_or_init(|| self.slice(literal.content).into())
            .clone()
    }

    pub(crate) fn is_blank(&self, list: Span) -> bool {
        self.nodes[list.range()].iter().all(|node| match node {
            Node::Text(span) => lossy(self.slice(*span))
                .trim_matches(crate::text::is_space)
                .is_empty(),
            _ => false,
        })
    }

    /// `file:line:column` of a position.
    pub(crate) fn location(&self, pos: Pos) -> String {
        let before = &self.text[..(pos as usize).min(self.text.len())];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = match memchr::memrchr(b'\n', before) {
            Some(at) => before.len() - at - 1,
            None => before.len(),
        };
        format!("{}:{line}:{column}", self.file)
    }
}

/// Parts as error messages quote them.
pub(crate) struct Shown<'c> {
    code: &'c Code,
    out: String,
}

impl<'c> Shown<'c> {
    fn of(code: &'c Code, write: impl FnOnce(&mut Self)) -> String {
        let mut shown = Self {
            code,
            out: String::new(),
        };
        write(&mut shown);
        shown.out
    }

    pub(crate) fn pipe(code: &'c Code, pipe: &Pipe) -> String {
        Self::of(code, |shown| shown.put_pipe(pipe))
    }

    pub(crate) fn command(code: &'c Code, command: &Command) -> String {
        Self::of(code, |shown| shown.put_command(command))
    }

    pub(crate) fn operand(code: &'c Code, operand: &Operand) -> String {
        Self::of(code, |shown| shown.put_operand(operand))
    }

    pub(crate) fn invocation(code: &'c Code, invocation: &Invocation) -> String {
        Self::of(code, |shown| {
            let name = crate::text::quote(invocation.name.as_bytes());
            let _ = write!(shown.out, "{{{{template {name}");
            if let Some(pipe) = invocation.pipe {
                shown.out.push(' ');
                shown.put_pipe(code.pipe(pipe));
            }
            shown.out.push_str("}}");
        })
    }

    fn put_text(&mut self, span: Span) {
        self.out.push_str(&lossy(self.code.slice(span)));
    }

    fn put_pipe(&mut self, pipe: &Pipe) {
        let variables = self.code.variables(pipe);
        for (at, variable) in variables.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            self.put_text(variable.name);
        }
        if !variables.is_empty() {
            self.out.push_str(if pipe.assigns { " = " } else { " := " });
        }
        for (at, command) in self.code.commands(pipe).iter().enumerate() {
            if at > 0 {
                self.out.push_str(" | ");
            }
            self.put_command(command);
        }
    }

    fn put_command(&mut self, command: &Command) {
        for (at, argument) in self.code.args(command).iter().enumerate() {
            if at > 0 {
                self.out.push(' ');
            }
            self.put_enclosed(argument);
        }
    }

    /// An operand, in parentheses if it is a pipeline.
    fn put_enclosed(&mut self, operand: &Operand) {
        match operand.kind {
            OperandKind::Pipe(pipe) => {
                self.out.push('(');
                self.put_pipe(self.code.pipe(pipe));
                self.out.push(')');
            }
            _ => self.put_operand(operand),
        }
    }

    fn put_operand(&mut self, operand: &Operand) {
        match operand.kind {
            OperandKind::Pipe(pipe) => self.put_pipe(self.code.pipe(pipe)),
            OperandKind::Chain(start) => {
                self.put_enclosed(&self.code.operands[start as usize]);
                self.put_text(operand.text);
            }
            _ => self.put_text(operand.text),
        }
    }
}
