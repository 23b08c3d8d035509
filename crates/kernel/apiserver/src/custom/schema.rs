//! The compiled schema of a custom kind, made when somebody first needs it.
//!
//! A definition that a client wrote is compiled when it comes: its faults are to be found then. The kinds that are part of
//! the program are many and large, and most installations use few of them.

use std::sync::{Arc, OnceLock};

use fairway_kernel_schema::shape::{ShapeId, Shapes};
use fairway_kernel_schema::structural::Structural;
use serde_json::{Value, json};
use tracing::error;

/// Makes the text of a schema, in which `$ref` names an entry of `$defs`.
pub type MakeSchema = Arc<dyn Fn() -> Value + Send + Sync>;

/// A schema, compiled or not yet.
pub struct Schema {
    compiled: OnceLock<Compiled>,
    make: Option<MakeSchema>,
}

/// What is compiled.
pub struct Compiled {
    /// Its schema.
    pub structural: Arc<Structural>,
    /// Its shape.
    pub shapes: Shapes,
    /// Root of the shape.
    pub shape: ShapeId,
}

impl Compiled {
    fn new(structural: Arc<Structural>) -> Self {
        let (shapes, shape) = structural.shapes();
        Self {
            structural,
            shapes,
            shape,
        }
    }
}

impl Schema {
    /// One that was compiled already.
    pub fn ready(structural: Arc<Structural>) -> Self {
        Self {
            compiled: OnceLock::from(Compiled::new(structural)),
            make: None,
        }
    }

    /// One that is compiled on first use.
    pub fn later(make: MakeSchema) -> Self {
        Self {
            compiled: OnceLock::new(),
            make: Some(make),
        }
    }

    /// The compiled form.
    pub fn get(&self) -> &Compiled {
        self.compiled.get_or_init(|| {
            let text = self.make.as_ref().map_or(Value::Null, |make| make());
            let structural = Structural::load_shared(&text).unwrap_or_else(|errors| {
                // Part of the program and tested with it; if it is wrong all the same, nothing is lost.
                error!(?errors, "a built-in schema is wrong; its objects are not checked");
                anything()
            });
            Compiled::new(Arc::new(structural))
        })
    }
}

/// A schema that keeps everything.
fn anything() -> Structural {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    Structural::load(&open).unwrap_or_else(|_| unreachable!("a schema of two words is right"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn it_is_made_once_and_not_before_it_is_needed() {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let schema = Schema::later(Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            json!({"$ref": "a", "$defs": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}})
        }));
        assert_eq!(made.load(Ordering::Relaxed), 0);
        let mut object = json!({"b": "x", "c": 1});
        assert_eq!(schema.get().structural.prune(&mut object), ["c"]);
        schema.get();
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_wrong_one_keeps_everything() {
        let schema = Schema::later(Arc::new(|| json!({"$ref": "nowhere", "$defs": {}})));
        let mut object = json!({"c": {"d": 1}});
        assert!(schema.get().structural.prune(&mut object).is_empty());
        assert_eq!(object, json!({"c": {"d": 1}}));
    }
}
