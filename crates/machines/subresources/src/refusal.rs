//! What is answered instead of what was asked for: Kubernetes' `Status`, in the words of its own libraries.

use serde_json::{Value, json};

/// What a request was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A VirtualMachine.
    Machine,
    /// A VirtualMachineInstance.
    Instance,
}

impl About {
    /// Upstream names the kind here, where Kubernetes names the resource.
    fn word(self) -> &'static str {
        match self {
            Self::Machine => "virtualmachine",
            Self::Instance => "virtualmachineinstance",
        }
    }
}

/// A request that is not followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The code of HTTP.
    pub code: u16,
    /// One word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// What it is about.
    pub details: Value,
    /// The message is all there is, as text.
    pub is_text: bool,
}

impl Refusal {
    fn named(code: u16, reason: &str, about: About, name: &str, message: String) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message,
            details: json!({"name": name, "group": "kubevirt.io", "kind": about.word()}),
            is_text: false,
        }
    }

    /// The state of the object forbids it.
    pub fn conflict(about: About, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {}.kubevirt.io {name:?}: {why}",
            about.word()
        );
        Self::named(409, "Conflict", about, name, message)
    }

    /// There is no such object.
    pub fn not_found(about: About, name: &str) -> Self {
        let message = format!("{}.kubevirt.io {name:?} not found", about.word());
        Self::named(404, "NotFound", about, name, message)
    }

    /// It is never done with such an object.
    pub fn forbidden(about: About, name: &str, why: &str) -> Self {
        let message = format!("{}.kubevirt.io {name:?} is forbidden: {why}", about.word());
        Self::named(403, "Forbidden", about, name, message)
    }

    /// The request makes no sense, or asks for what there is not.
    pub fn bad_request(why: impl Into<String>) -> Self {
        Self {
            code: 400,
            reason: "BadRequest".to_owned(),
            message: why.into(),
            details: Value::Null,
            is_text: false,
        }
    }

    /// The body cannot be read.
    pub fn malformed(error: &impl std::fmt::Display) -> Self {
        Self::bad_request(format!(
            "Can not unmarshal Request body to struct, error: {error}"
        ))
    }

    /// It failed.
    pub fn internal(why: &str) -> Self {
        Self {
            code: 500,
            reason: "InternalError".to_owned(),
            message: format!("Internal error occurred: {why}"),
            details: json!({"causes": [{"message": why}]}),
            is_text: false,
        }
    }

    /// The same with the code of a failure and as text, which is what upstream answers where it asks a guest. There virtctl
    /// shows text only.
    #[must_use]
    pub fn into_failure(mut self) -> Self {
        self.code = 500;
        self.is_text = true;
        self
    }

    /// The `Status`.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}
