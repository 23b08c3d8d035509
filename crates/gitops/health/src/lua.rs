//! The host of users' health scripts.
//!
//! A script sees the object as the global `obj` and returns a table with `status` and `message`. As in Argo CD it has the
//! base and table libraries, and `os.time` and `os.date`; with open libraries also strings, mathematics and coroutines.
//! There are no files, processes, modules, debug hooks or byte code here at all, even with open libraries.
//!
//! Nothing that a script does takes for ever: instructions and memory are counted, patterns have a budget of their own
//! ([`pattern`]), and a caller with a clock may add a limit of time. Running out cannot be caught by `pcall`.

mod os;
mod pattern;
mod strings;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mlua::chunk::ChunkMode;
use mlua::{HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};
use serde_json::Value as Json;

use crate::{Health, Status};

/// How much one run of a script may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Instructions of the virtual machine, and steps of pattern matching.
    pub instructions: u64,
    /// Bytes.
    pub memory: usize,
    /// Time, where the caller has a clock.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            instructions: 10_000_000,
            memory: 16 << 20,
            time: Duration::from_secs(1),
        }
    }
}

/// A clock that only goes forward; what it counts from does not matter.
pub type Stopwatch = Arc<dyn Fn() -> Duration + Send + Sync>;

/// What a script runs with.
#[derive(Clone)]
pub struct Host {
    /// What `os.time()` says.
    pub now: jiff::Timestamp,
    /// Whether the script asked for the standard libraries (`useOpenLibs`).
    pub open_libs: bool,
    /// How much it may use.
    pub limits: Limits,
    /// What [`Limits::time`] is measured with.
    pub stopwatch: Option<Stopwatch>,
}

/// Why a script gave no health.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It is no Lua, or stopped with an error.
    #[error("{0}")]
    Failed(String),
    /// It returned something that is no health.
    #[error("expect table output from Lua script, not {0}")]
    WrongType(&'static str),
    /// It used more than it may.
    #[error("the health script was stopped: it used more than {0}")]
    OverLimit(&'static str),
}

/// How many instructions run between two looks at the limits.
const STRIDE: u32 = 100;

/// What is left for a script.
struct Budget {
    steps: Cell<u64>,
    exhausted: Cell<Option<&'static str>>,
}

impl Budget {
    /// Takes from what is left; an error that scripts cannot catch when there is nothing.
    fn spend(&self, steps: u64) -> mlua::Result<()> {
        match self.steps.get().checked_sub(steps) {
            Some(left) => self.steps.set(left),
            None => self.exhausted.set(Some("its instructions")),
        }
        self.check()
    }

    fn check(&self) -> mlua::Result<()> {
        match self.exhausted.get() {
            Some(what) => Err(mlua::Error::runtime(format!("used more than {what}"))),
            None => Ok(()),
        }
    }
}

impl Host {
    /// Runs a script over an object.
    pub fn health(&self, script: &str, object: &Json) -> Result<Health, ScriptError> {
        let budget = Rc::new(Budget {
            steps: Cell::new(self.limits.instructions),
            exhausted: Cell::new(None),
        });
        let result = self.run(script, object, &budget);
        if let Some(what) = budget.exhausted.get() {
            return Err(ScriptError::OverLimit(what));
        }
        match result {
            Ok(health) => health,
            Err(error) => Err(failure(&error)),
        }
    }

    fn run(
        &self,
        script: &str,
        object: &Json,
        budget: &Rc<Budget>,
    ) -> mlua::Result<Result<Health, ScriptError>> {
        let mut libraries = StdLib::TABLE;
        if self.open_libs {
            libraries |= StdLib::STRING | StdLib::MATH | StdLib::COROUTINE | StdLib::BIT;
        }
        // Panics are not for scripts to catch, and there are none in what is handed to them.
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        lua.set_memory_limit(self.limits.memory)?;
        self.furnish(&lua, budget)?;
        lua.globals().set("obj", to_lua(&lua, object)?)?;
        lua.globals().set("actionParams", lua.create_table()?)?;
        self.watch(&lua, budget)?;
        let chunk = lua.load(script).set_name("=health.lua").set_mode(ChunkMode::Text);
        let value = chunk.eval::<Value>()?;
        // A table is a reference into the interpreter, so it is read while that is here.
        Ok(read(&value))
    }

    /// Counts while the script runs.
    fn watch(&self, lua: &Lua, budget: &Rc<Budget>) -> mlua::Result<()> {
        let (budget, time) = (Rc::clone(budget), self.limits.time);
        let deadline = self.stopwatch.clone().map(|clock| {
            let start = clock();
            move || clock().saturating_sub(start) > time
        });
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(STRIDE), move |_, _| {
            if deadline.as_ref().is_some_and(|is_over| is_over()) {
                budget.exhausted.set(Some("its time"));
            }
            budget.spend(u64::from(STRIDE))?;
            Ok(VmState::Continue)
        })
    }

    /// Takes away what reaches outside, and adds what the interpreter of Argo CD has and this one has not.
    fn furnish(&self, lua: &Lua, budget: &Rc<Budget>) -> mlua::Result<()> {
        let globals = lua.globals();
        for name in ["dofile", "loadfile", "collectgarbage", "module"] {
            globals.set(name, Value::Nil)?;
        }
        globals.set("print", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
        let load = lua.create_function(|lua, (source, name): (mlua::LuaString, Option<String>)| {
            let name = format!("={}", name.as_deref().unwrap_or("chunk"));
            let chunk = lua.load(source.as_bytes().to_vec()).set_name(name);
            match chunk.set_mode(ChunkMode::Text).into_function() {
                Ok(function) => Ok((Value::Function(function), None)),
                Err(error) => Ok((Value::Nil, Some(error.to_string()))),
            }
        })?;
        globals.set("load", &load)?;
        globals.set("loadstring", load)?;

        let table: Table = globals.get("table")?;
        table.set("getn", lua.create_function(|_, list: Table| Ok(list.raw_len()))?)?;
        globals.set("unpack", table.get::<Value>("unpack")?)?;
        globals.set("os", os::library(lua, self.now)?)?;
        if self.open_libs {
            strings::bound(lua, budget)?;
        }
        let require = lua.create_function(|lua, name: String| {
            let known = ["os", "table", "string", "math", "coroutine"].contains(&name.as_str());
            match lua.globals().get::<Value>(name.as_str())? {
                Value::Table(library) if known => Ok(library),
                _ => Err(mlua::Error::runtime(format!("module {name} not found"))),
            }
        })?;
        globals.set("require", require)?;
        guard_catching(lua, budget, self.open_libs)
    }
}

/// After the limits are reached an error goes through everything that would catch it.
fn guard_catching(lua: &Lua, budget: &Rc<Budget>, coroutines: bool) -> mlua::Result<()> {
    let shared = Rc::clone(budget);
    let check = lua.create_function(move |_, results: MultiValue| {
        shared.check()?;
        Ok(results)
    })?;
    let guard: mlua::Function = lua
        .load("local check = ... return function(raw) return function(...) return check(raw(...)) end end")
        .set_mode(ChunkMode::Text)
        .call(check)?;
    let globals = lua.globals();
    for name in ["pcall", "xpcall"] {
        let raw: Value = globals.get(name)?;
        globals.set(name, guard.call::<Value>(raw)?)?;
    }
    if coroutines {
        let library: Table = globals.get("coroutine")?;
        let raw: Value = library.get("resume")?;
        library.set("resume", guard.call::<Value>(raw)?)?;
    }
    Ok(())
}

/// A JSON value as Argo CD hands it to scripts: null is nil, and so is not there.
fn to_lua(lua: &Lua, value: &Json) -> mlua::Result<Value> {
    Ok(match value {
        Json::Null => Value::Nil,
        Json::Bool(yes) => Value::Boolean(*yes),
        Json::Number(number) => Value::Number(number.as_f64().unwrap_or_default()),
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Array(items) => {
            let list = lua.create_table_with_capacity(items.len(), 0)?;
            for item in items.iter().filter(|item| !item.is_null()) {
                list.raw_push(to_lua(lua, item)?)?;
            }
            Value::Table(list)
        }
        Json::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (key, item) in fields.iter().filter(|(_, item)| !item.is_null()) {
                table.raw_set(key.as_str(), to_lua(lua, item)?)?;
            }
            Value::Table(table)
        }
    })
}

/// What a script returned, as a health.
fn read(value: &Value) -> Result<Health, ScriptError> {
    let table = match value {
        Value::Nil => return Ok(Health::default()),
        Value::Table(table) => table,
        Value::Boolean(_) => return Err(ScriptError::WrongType("boolean")),
        Value::Integer(_) | Value::Number(_) => return Err(ScriptError::WrongType("number")),
        Value::String(_) => return Err(ScriptError::WrongType("string")),
        Value::Function(_) => return Err(ScriptError::WrongType("function")),
        Value::Thread(_) => return Err(ScriptError::WrongType("thread")),
        _ => return Err(ScriptError::WrongType("userdata")),
    };
    // A table without keys, or a list, is no opinion.
    if table.raw_len() > 0 || table.is_empty() {
        return Ok(Health::default());
    }
    let status = field(table, "status")?.unwrap_or_default();
    let message = field(table, "message")?.unwrap_or_default();
    Ok(match Status::parse(&status) {
        Some(status) => Health::new(status, message),
        None => Health::new(Status::Unknown, "Lua returned an invalid health status"),
    })
}

fn field(table: &Table, name: &str) -> Result<Option<String>, ScriptError> {
    let value = table.raw_get::<Value>(name).map_err(|error| failure(&error))?;
    match value {
        Value::Nil => Ok(None),
        Value::String(text) => Ok(Some(text.to_string_lossy())),
        other => Err(ScriptError::Failed(format!(
            "the field {name} of the health that the Lua script returned is no string but a {}",
            other.type_name()
        ))),
    }
}

/// An error in the words of the script: where and what, without the stack.
fn failure(error: &mlua::Error) -> ScriptError {
    match error {
        mlua::Error::MemoryError(_) => ScriptError::OverLimit("its memory"),
        mlua::Error::CallbackError { cause, .. } => failure(cause),
        mlua::Error::RuntimeError(text) | mlua::Error::SyntaxError { message: text, .. } => {
            let text = text.split("\nstack traceback").next().unwrap_or(text);
            ScriptError::Failed(text.to_owned())
        }
        other => ScriptError::Failed(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
