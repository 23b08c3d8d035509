//! Machines in place of those that run: they copy their disks on order, and tell what they were ordered.

use std::sync::Mutex;

use fairway_controller::ObjectKey;
use fairway_fabric::Connection;
use fairway_machines_guests::{Door, Guests, Order, Refusal};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::harness::NODE;

/// Machines that copy their disks: at once, and are done when the test says so.
#[derive(Default)]
pub(crate) struct Copying {
    pub(crate) orders: Mutex<Vec<Order>>,
    /// What a copy that was begun comes to; nothing while it is under way.
    pub(crate) end: Mutex<Option<Result<(), String>>>,
    /// Why nothing is begun.
    pub(crate) refusal: Mutex<Option<String>>,
}

impl Guests for Copying {
    fn can_plug(&self) -> bool {
        false
    }

    fn open<'a>(
        &'a self,
        _: &'a str,
        key: &'a ObjectKey,
        _: Door,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Refusal>> {
        Box::pin(async move { Err(Refusal::NotRunning(key.clone())) })
    }

    fn order<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        order: Order,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        assert_eq!((node, key.name.as_str()), (NODE, "web"));
        self.orders.lock().unwrap().push(order.clone());
        let answer = match order {
            Order::BeginCopy { disk, to } => match self.refusal.lock().unwrap().clone() {
                Some(why) => Err(Refusal::Failed(why)),
                None => {
                    assert!(to.exists());
                    std::fs::copy(disk, to).unwrap();
                    Ok(Value::Null)
                }
            },
            Order::CopyDone { .. } => match self.end.lock().unwrap().clone() {
                None => Ok(json!({"done": false})),
                Some(Ok(())) => Ok(json!({"done": true})),
                Some(Err(why)) => Err(Refusal::Failed(why)),
            },
            _ => Ok(Value::Null),
        };
        Box::pin(std::future::ready(answer))
    }
}
