//! Texts with expressions and statements in them, read into a tree.

use super::error::{Error, Fault};
use super::syntax::{Node, Parser, expression};

/// How deeply statements may be nested.
const MAX_NESTING: usize = 24;

/// How the expressions of a text are marked, and what becomes of the white space around statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// What an expression begins with; it ends with `}}`.
    pub start: &'static str,
    /// A statement takes the line end after it with it.
    pub trim_blocks: bool,
    /// And the blanks before it, if nothing else is before it on its line.
    pub lstrip_blocks: bool,
}

impl Default for Syntax {
    fn default() -> Self {
        Self {
            start: "${{",
            trim_blocks: false,
            lstrip_blocks: false,
        }
    }
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Plain(String),
    Print(usize, Node),
    If(usize, Vec<(Node, Vec<Part>)>, Vec<Part>),
    For(usize, Vec<String>, Node, Vec<Part>, Vec<Part>),
    Set(usize, Vec<String>, Node),
    SetBlock(usize, String, Vec<Part>),
    Macro(usize, String, Vec<(String, Option<Node>)>, Vec<Part>),
    /// What a body prints, through a filter that is applied to the variable `_`.
    Filter(usize, Node, Vec<Part>),
}

/// The variable that holds what a `{% filter %}` block has printed. No name in a template can be this.
pub(super) const FILTERED: &str = " filtered";

/// Something between marks, or the text between two of them.
enum Piece<'s> {
    Plain(&'s str),
    Print(&'s str),
    Statement(&'s str),
}

/// Reads a text.
pub(super) fn document(source: &str, syntax: Syntax) -> Result<Vec<Part>, Error> {
    let pieces = pieces(source, syntax)?;
    let mut reader = Reader {
        pieces: pieces.into_iter().peekable(),
        nesting: 0,
    };
    let (parts, ended_by) = reader.parts(&[])?;
    match ended_by {
        None => Ok(parts),
        Some((line, word, _)) => Err(Error::syntax(format!("{word} has no beginning")).at(line)),
    }
}

/// Cuts a text at its marks. Strings and brackets within expressions are respected.
fn pieces(source: &str, syntax: Syntax) -> Result<Vec<(usize, Piece<'_>)>, Error> {
    let mut found: Vec<(usize, Piece<'_>)> = Vec::new();
    let (mut rest, mut line, mut trims) = (source, 1, false);
    loop {
        let marks = [syntax.start, "{%", "{#"];
        let next = marks
            .iter()
            .filter_map(|mark| rest.find(mark).map(|at| (at, *mark)))
            .min_by_key(|(at, mark)| (*at, usize::MAX - mark.len()));
        let plain = &rest[..next.map_or(rest.len(), |(at, _)| at)];
        let (mut kept, lines) = (plain, plain.matches('\n').count());
        if trims {
            kept = kept.trim_start();
        }
        let Some((at, mark)) = next else {
            push_plain(&mut found, line, kept);
            return Ok(found);
        };
        let body = &rest[at + mark.len()..];
        let is_statement = mark == "{%";
        if body.starts_with('-') {
            kept = kept.trim_end();
        } else if syntax.lstrip_blocks && mark != syntax.start && is_line_start(source, rest, at) {
            kept = kept.trim_end_matches([' ', '\t']);
        }
        push_plain(&mut found, line, kept);
        line += lines;
        let (inside, after) = match mark {
            "{#" => {
                let end = body
                    .find("#}")
                    .ok_or_else(|| Error::syntax("a comment does not end with #}").at(line))?;
                (&body[..end], &body[end + 2..])
            }
            "{%" => {
                code(body, "%}").ok_or_else(|| Error::syntax("a statement does not end with %}").at(line))?
            }
            _ => code(body, "}}").ok_or_else(|| {
                Error::syntax(format!(
                    "an expression that begins with {mark} does not end with }}}}"
                ))
                .at(line)
            })?,
        };
        let at_line = line;
        line += inside.matches('\n').count();
        let (inside, is_tight) = match inside.strip_suffix('-') {
            Some(shorter) if mark != "{#" || !shorter.is_empty() => (shorter, true),
            _ => (inside, false),
        };
        let inside = inside.strip_prefix('-').unwrap_or(inside).trim();
        trims = is_tight;
        rest = after;
        if !is_tight && syntax.trim_blocks && mark != syntax.start {
            let shorter = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'));
            line += usize::from(shorter.is_some());
            rest = shorter.unwrap_or(rest);
        }
        match mark {
            "{#" => {}
            _ if !is_statement => found.push((at_line, Piece::Print(inside))),
            _ if inside == "raw" || inside == "verbatim" => {
                let (body, after) = raw(rest, inside).ok_or_else(|| {
                    Error::syntax(format!("{inside} does not end with end{inside}")).at(at_line)
                })?;
                push_plain(&mut found, line, if trims { body.trim_start() } else { body });
                line += body.matches('\n').count();
                (rest, trims) = (after, false);
            }
            _ => found.push((at_line, Piece::Statement(inside))),
        }
    }
}

/// Whether nothing but blanks is before a place on its line of the whole text.
fn is_line_start(source: &str, rest: &str, at: usize) -> bool {
    let place = source.len() - rest.len() + at;
    let before = source[..place].trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with('\n')
}

fn push_plain<'s>(found: &mut Vec<(usize, Piece<'s>)>, line: usize, text: &'s str) {
    if !text.is_empty() {
        found.push((line, Piece::Plain(text)));
    }
}

/// What is before an end mark that is neither in a text nor in brackets, and what is after it.
fn code<'s>(body: &'s str, end: &str) -> Option<(&'s str, &'s str)> {
    let (mut quote, mut depth, mut escaped) = (None, 0_usize, false);
    for (at, c) in body.char_indices() {
        if let Some(open) = quote {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == open => quote = None,
                _ => {}
            }
            continue;
        }
        if depth == 0 && body[at..].starts_with(end) {
            return Some((&body[..at], &body[at + end.len()..]));
        }
        match c {
            '"' | '\'' => quote = Some(c),
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    // Brackets that do not match: the first end mark, so that the expression is named as what is wrong.
    let at = body.find(end)?;
    Some((&body[..at], &body[at + end.len()..]))
}

/// The body of a raw block, and what follows it.
fn raw<'s>(rest: &'s str, word: &str) -> Option<(&'s str, &'s str)> {
    let mut from = 0;
    loop {
        let open = from + rest[from..].find("{%")?;
        let close = open + rest[open..].find("%}")?;
        let inside = rest[open + 2..close].trim_matches('-').trim();
        if inside.strip_prefix("end") == Some(word) {
            return Some((&rest[..open], &rest[close + 2..]));
        }
        from = open + 2;
    }
}

/// Where a list of parts ended: line, word, and what else the statement says.
type End<'s> = (usize, &'s str, &'s str);

struct Reader<'s> {
    pieces: std::iter::Peekable<std::vec::IntoIter<(usize, Piece<'s>)>>,
    nesting: usize,
}

impl<'s> Reader<'s> {
    /// Parts up to a statement that is one of `ends`, or that begins nothing.
    fn parts(&mut self, ends: &[&str]) -> Result<(Vec<Part>, Option<End<'s>>), Error> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(Error::new(Fault::TooLarge(format!(
                "statements are nested more than {MAX_NESTING} deep"
            ))));
        }
        let mut parts = Vec::new();
        while let Some((line, piece)) = self.pieces.next() {
            match piece {
                Piece::Plain(text) => parts.push(Part::Plain(text.to_owned())),
                Piece::Print(source) => {
                    let node = expression(source).map_err(|error| error.at(line))?;
                    parts.push(Part::Print(line, node));
                }
                Piece::Statement(source) => {
                    let end = source
                        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                        .unwrap_or(source.len());
                    let (word, more) = (&source[..end], source[end..].trim());
                    if ends.contains(&word)
                        || word.starts_with("end")
                        || matches!(word, "else" | "elif" | "elseif")
                    {
                        self.nesting -= 1;
                        return Ok((parts, Some((line, word, more))));
                    }
                    let part = self.statement(line, word, more).map_err(|error| error.at(line))?;
                    parts.push(part);
                }
            }
        }
        self.nesting -= 1;
        Ok((parts, None))
    }

    fn body(&mut self, line: usize, word: &str, ends: &[&str]) -> Result<(Vec<Part>, End<'s>), Error> {
        let (parts, ended_by) = self.parts(ends)?;
        match ended_by {
            Some(end) if ends.contains(&end.1) => Ok((parts, end)),
            Some((at, found, _)) => Err(Error::syntax(format!("{found} does not belong to {word}")).at(at)),
            None => Err(Error::syntax(format!("{word} does not end")).at(line)),
        }
    }

    fn statement(&mut self, line: usize, word: &str, more: &str) -> Result<Part, Error> {
        match word {
            "if" => self.choice(line, more),
            "for" => self.repetition(line, more),
            "set" => self.assignment(line, more),
            "macro" => self.definition(line, more),
            "filter" => {
                let mut parser = Parser::new(more)?;
                let node = parser.filter_of(expression_of_filtered()?)?;
                parser.end()?;
                let (body, _) = self.body(line, word, &["endfilter"])?;
                Ok(Part::Filter(line, node, body))
            }
            "" => Err(Error::syntax("a statement is empty")),
            "include" | "import" | "from" | "extends" | "block" | "call" | "asyncEach" | "asyncAll" => {
                Err(Error::syntax(format!(
                    "{word} is not supported: a file of a template stands for itself"
                )))
            }
            other => Err(Error::syntax(format!("{other:?} is not a statement"))),
        }
    }

    fn choice(&mut self, line: usize, more: &str) -> Result<Part, Error> {
        let mut branches = Vec::new();
        let mut condition = expression(more)?;
        loop {
            let ends = ["elif", "elseif", "else", "endif"];
            let (body, (at, word, more)) = self.body(line, "if", &ends)?;
            branches.push((condition, body));
            match word {
                "endif" => return Ok(Part::If(line, branches, Vec::new())),
                "else" => {
                    let (other, _) = self.body(line, "if", &["endif"])?;
                    return Ok(Part::If(line, branches, other));
                }
                _ => condition = expression(more).map_err(|error| error.at(at))?,
            }
        }
    }

    fn repetition(&mut self, line: usize, more: &str) -> Result<Part, Error> {
        let mut parser = Parser::new(more)?;
        let mut names = vec![parser.name()?];
        while parser.eat_sign(",") {
            names.push(parser.name()?);
        }
        if !parser.eat_name("in") {
            return Err(Error::syntax("for NAME in LIST is expected"));
        }
        let over = parser.expression()?;
        parser.end()?;
        let (body, (_, word, _)) = self.body(line, "for", &["else", "endfor"])?;
        let other = match word {
            "else" => self.body(line, "for", &["endfor"])?.0,
            _ => Vec::new(),
        };
        Ok(Part::For(line, names, over, body, other))
    }

    fn assignment(&mut self, line: usize, more: &str) -> Result<Part, Error> {
        let mut parser = Parser::new(more)?;
        let mut names = vec![parser.name()?];
        while parser.eat_sign(",") {
            names.push(parser.name()?);
        }
        if parser.is_at_end() && names.len() == 1 {
            let (body, _) = self.body(line, "set", &["endset"])?;
            return Ok(Part::SetBlock(line, names.swap_remove(0), body));
        }
        parser.expect("=")?;
        let value = parser.expression()?;
        parser.end()?;
        Ok(Part::Set(line, names, value))
    }

    fn definition(&mut self, line: usize, more: &str) -> Result<Part, Error> {
        let mut parser = Parser::new(more)?;
        let name = parser.name()?;
        parser.expect("(")?;
        let mut parameters = Vec::new();
        while !parser.eat_sign(")") {
            let parameter = parser.name()?;
            let default = match parser.eat_sign("=") {
                true => Some(parser.expression()?),
                false => None,
            };
            parameters.push((parameter, default));
            if !parser.eat_sign(",") {
                parser.expect(")")?;
                break;
            }
        }
        parser.end()?;
        let (body, _) = self.body(line, "macro", &["endmacro"])?;
        Ok(Part::Macro(line, name, parameters, body))
    }
}

fn expression_of_filtered() -> Result<Node, Error> {
    Node::variable(FILTERED)
}
