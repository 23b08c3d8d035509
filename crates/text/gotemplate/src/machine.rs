//! One run of templates: what it may use, what it may look at, and what it has produced.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::ast::Template;
use crate::error::{Fault, ParseError};
use crate::exec;
use crate::functions::Functions;
use crate::parse::parse_bytes;
use crate::value::{Map, Value};

/// The bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How deep templates may call each other.
    pub depth: usize,
    /// Elementary steps: a node that is executed is one, and so are 16 bytes that a function produces.
    pub work: u64,
    /// How many bytes may be printed, counted again whenever a template prints what another one printed; and how many a
    /// function may make at once.
    pub output: u64,
}

impl Default for Limits {
    /// Far more than any chart needs, and seconds at most.
    fn default() -> Self {
        Self {
            depth: 200,
            work: 100_000_000,
            output: 256 * 1024 * 1024,
        }
    }
}

/// What Go would take from the clock, from chance and from around it.
pub trait Host {
    /// Nanoseconds since 1970.
    fn now(&self) -> i128;
    /// Fills a buffer with chance.
    fn entropy(&self, buffer: &mut [u8]);
    /// Answers what a function of the caller asks of its surroundings.
    fn ask(&self, question: &str, args: &[Value]) -> Result<Value, Fault>;
}

/// A host without clock, chance and answers: the same template and data give the same text for ever.
///
/// Functions that are of no use without them are to be taken away ([`crate::sprig::DIFFERS_EACH_TIME`]).
pub struct NoHost;

impl Host for NoHost {
    fn now(&self) -> i128 {
        0
    }

    fn entropy(&self, buffer: &mut [u8]) {
        buffer.fill(0);
    }

    fn ask(&self, question: &str, _: &[Value]) -> Result<Value, Fault> {
        Err(Fault::new(format!("nobody answers {question}")))
    }
}

/// What a field of a map is when there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingKey {
    /// No value.
    #[default]
    Invalid,
    /// The zero value of what the map holds.
    Zero,
    /// An error.
    Error,
}

/// Templates that can call each other.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    by_name: HashMap<Arc<str>, Arc<Template>>,
}

impl Templates {
    /// Adds what a file defines. A later definition replaces an earlier one unless it is blank.
    pub fn add(&mut self, templates: &[Arc<Template>]) {
        for template in templates {
            if !(template.is_blank() && self.by_name.contains_key(&template.name)) {
                self.by_name.insert(template.name.clone(), template.clone());
            }
        }
    }

    /// A template by its name.
    pub fn get(&self, name: &str) -> Option<&Arc<Template>> {
        self.by_name.get(name)
    }
}

/// The size of buffers that are kept, and how many are.
const SPARE: usize = 64 * 1024;
const MAX_SPARE: usize = 8;

/// A text and the name under which it was read.
type TextKey = (Arc<str>, Arc<[u8]>);

/// A run.
pub struct Machine<'a> {
    pub(crate) functions: &'a Functions,
    templates: &'a Templates,
    /// What texts that are executed while templates run have defined.
    overlays: Vec<Templates>,
    parsed: HashMap<TextKey, Vec<Arc<Template>>>,
    host: &'a dyn Host,
    pub(crate) missing_key: MissingKey,
    limits: Limits,
    work: u64,
    output: u64,
    pub(crate) depth: usize,
    pub(crate) out: Vec<u8>,
    /// Buffers that nothing is printed into at the moment.
    spare: Vec<Vec<u8>>,
    pub(crate) frame: Vec<exec::Slot>,
    changed: Vec<Map>,
    pub(crate) regexes: HashMap<Arc<[u8]>, Rc<regex::bytes::Regex>>,
}

impl<'a> Machine<'a> {
    /// Starts a run.
    pub fn new(
        functions: &'a Functions,
        templates: &'a Templates,
        host: &'a dyn Host,
        limits: Limits,
    ) -> Self {
        Self {
            functions,
            templates,
            overlays: Vec::new(),
            parsed: HashMap::new(),
            host,
            missing_key: MissingKey::default(),
            limits,
            work: limits.work,
            output: limits.output,
            depth: 0,
            out: Vec::new(),
            spare: Vec::new(),
            frame: Vec::new(),
            changed: Vec::new(),
            regexes: HashMap::new(),
        }
    }

    /// Chooses what a missing key is.
    pub fn missing_key(mut self, missing_key: MissingKey) -> Self {
        self.missing_key = missing_key;
        self
    }

    /// Asks the host.
    pub fn ask(&self, question: &str, args: &[Value]) -> Result<Value, Fault> {
        self.host.ask(question, args)
    }

    /// Nanoseconds since 1970.
    pub fn now(&self) -> i128 {
        self.host.now()
    }

    /// Bytes of chance.
    pub fn entropy(&self, buffer: &mut [u8]) {
        self.host.entropy(buffer);
    }

    /// Executes a template and gives what it prints.
    pub fn execute(&mut self, name: &str, data: &Value) -> Result<Vec<u8>, Fault> {
        let Some(template) = self.find(name) else {
            let name = crate::text::quote(name.as_bytes());
            return Err(Fault::Message(format!(
                "template: no template {name} associated with template \"gotpl\""
            )));
        };
        self.run(&template, data)
    }

    /// As [`Machine::execute`], for those who want a value.
    pub fn include(&mut self, name: &str, data: &Value) -> Result<Value, Fault> {
        let mut printed = self.execute(name, data)?;
        let value = Value::Str(printed.as_slice().into());
        // Most of what is included is small, and much is.
        if printed.capacity() <= SPARE && self.spare.len() < MAX_SPARE {
            printed.clear();
            self.spare.push(printed);
        }
        Ok(value)
    }

    fn run(&mut self, template: &Template, data: &Value) -> Result<Vec<u8>, Fault> {
        let buffer = match self.depth {
            // What is printed there stays.
            0 => Vec::new(),
            _ => self.spare.pop().unwrap_or_default(),
        };
        let outer = std::mem::replace(&mut self.out, buffer);
        let result = exec::execute(self, template, data);
        let printed = std::mem::replace(&mut self.out, outer);
        result?;
        Ok(printed)
    }

    /// Reads a text as a file of that name and executes it. What it defines is seen by everything that it calls.
    pub fn execute_text(
        &mut self,
        file: &Arc<str>,
        text: &Arc<[u8]>,
        data: &Value,
    ) -> Result<Vec<u8>, TextFault> {
        let key = (file.clone(), text.clone());
        let templates = match self.parsed.get(&key) {
            Some(templates) => templates.clone(),
            None => {
                self.spend(text.len() as u64)?;
                let templates = parse_bytes(file, text, self.functions).map_err(TextFault::Parse)?;
                self.parsed.insert(key, templates.clone());
                templates
            }
        };
        let Some(main) = templates.first() else {
            return Ok(Vec::new());
        };
        let mut overlay = Templates::default();
        for template in &templates[1..] {
            if !(template.is_blank() && self.find(&template.name).is_some()) {
                overlay.by_name.insert(template.name.clone(), template.clone());
            }
        }
        self.overlays.push(overlay);
        let result = self.run(main, data);
        self.overlays.pop();
        result.map_err(TextFault::Exec)
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Template>> {
        let mut layers = self.overlays.iter().rev();
        let overlaid = layers.find_map(|layer| layer.get(name));
        overlaid.or_else(|| self.templates.get(name)).cloned()
    }

    /// Pays for work, in steps.
    pub fn spend(&mut self, steps: u64) -> Result<(), Fault> {
        match self.work.checked_sub(steps) {
            Some(rest) => {
                self.work = rest;
                Ok(())
            }
            None => {
                self.work = 0;
                let limit = self.limits.work;
                Err(Fault::Limit(format!(
                    "the limit of {limit} steps for one rendering is exceeded"
                )))
            }
        }
    }

    /// Pays for text or a list that a function makes.
    pub fn spend_bytes(&mut self, bytes: usize) -> Result<(), Fault> {
        let limit = self.limits.output;
        if bytes as u64 > limit {
            return Err(Fault::Limit(format!(
                "a function makes {bytes} bytes at once, more than the limit of {limit}"
            )));
        }
        self.spend(bytes as u64 / 16 + 1)
    }

    pub(crate) fn print(&mut self, text: &[u8]) -> Result<(), Fault> {
        match self.output.checked_sub(text.len() as u64) {
            Some(rest) => self.output = rest,
            None => {
                let limit = self.limits.output;
                return Err(Fault::Limit(format!(
                    "the limit of {limit} bytes of output is exceeded"
                )));
            }
        }
        self.out.extend_from_slice(text);
        Ok(())
    }

    pub(crate) fn descend(&mut self) -> Result<(), Fault> {
        if self.depth >= self.limits.depth {
            let limit = self.limits.depth;
            return Err(Fault::Limit(format!("exceeded maximum template depth ({limit})")));
        }
        self.depth += 1;
        Ok(())
    }

    /// Notes that a map was changed in place. Only such maps can hold themselves, and they are emptied after the run,
    /// or nobody would ever let go of them.
    pub fn changed(&mut self, map: &Map) {
        if map.track() {
            self.changed.push(map.clone());
        }
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        for map in self.changed.drain(..) {
            map.clear();
        }
    }
}

/// Why a text could not be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// It is no template.
    #[error("{0}")]
    Parse(ParseError),
    /// It failed.
    #[error("{0}")]
    Exec(Fault),
}

impl From<Fault> for TextFault {
    fn from(fault: Fault) -> Self {
        Self::Exec(fault)
    }
}
