//! One step: its condition, its repetitions, its input, and its action.

use fairway_portal_template::expression::Variables;
use fairway_portal_template::input;
use fairway_portal_template::run::StepState;
use fairway_portal_template::template::{Template, holds};
use fairway_portal_template::turns;
use serde_json::{Map, Value, json};

use super::job::{Job, StepError};
use crate::ports::Person;
use crate::urls::HTTPS;
use crate::voyage::Voyage;
use crate::{World, actions, entities};
use fairway_portal_template::answers;
use fairway_portal_template::names::EntityRef;
use fairway_portal_template::pages;

/// What expressions see, without secrets.
pub(crate) fn variables(world: &World, voyage: &Voyage, template: &Template) -> Variables {
    variables_after(world, voyage, template, None)
}

/// The same, as if a step had been done already, with this output.
pub(crate) fn variables_after(
    world: &World,
    voyage: &Voyage,
    template: &Template,
    done: Option<(&str, &Value)>,
) -> Variables {
    let mut steps = Map::new();
    for record in &voyage.run.steps {
        if record.state == StepState::Completed {
            steps.insert(record.id.clone(), json!({"output": record.output}));
        }
    }
    if let Some((id, output)) = done {
        steps.insert(id.to_owned(), json!({ "output": output }));
    }
    // Defaults of questions that were not answered are answers, too; that they are good was judged at the start. Without its pages,
    // whatever was answered counts for nothing.
    let mut values = pages::asked(template, &voyage.values)
        .map(|asked| asked.values)
        .unwrap_or_default();
    for secret in answers::secret_questions(template) {
        values.shift_remove(&secret);
    }
    let name = voyage.person.short_name();
    // As the original has it, somebody whom the catalog does not know has no entity.
    let user = json!({"ref": format!("user:default/{name}"), "entity": voyage.user});
    Variables::default()
        .with("parameters", &Value::Object(values))
        .with("steps", &Value::Object(steps))
        .with("user", &user)
        .with(
            "context",
            &json!({"task": {"id": voyage.uid}, "gateway": gateway(world)}),
        )
}

/// How what is published is reached: the domain of host names that nobody chose, and what is written behind a name where HTTPS is
/// at another port than usual.
fn gateway(world: &World) -> Value {
    let gateways = &world.options.gateways;
    let port = match gateways.port(HTTPS) {
        HTTPS => String::new(),
        port => format!(":{port}"),
    };
    json!({"domain": gateways.domain(), "port": port})
}

/// Whether a template asks who started it beyond his name.
pub(crate) fn asks_for_user(template: &Template) -> bool {
    let is_asked = |value: &Value| value.to_string().contains("user.entity");
    let in_steps = template.steps.iter().any(|step| {
        let conditions = [step.condition.as_ref(), step.each.as_ref()];
        is_asked(&step.input) || conditions.into_iter().flatten().any(is_asked)
    });
    in_steps || is_asked(&template.output)
}

/// Who started the run, as the catalog knows him.
pub(crate) async fn user(world: &World, voyage: &Voyage, person: &Person) -> Option<Value> {
    let reference = EntityRef::parse(person.short_name(), Some("user"), None).ok()?;
    let found = entities::find(world, &voyage.workspace, person, &reference).await;
    found.ok().flatten()
}

/// Does a step; its output, or nothing if its condition does not hold.
pub(crate) async fn perform(job: &mut Job<'_>) -> Result<Option<Value>, StepError> {
    let step = job.template.steps.get(job.at).cloned();
    let step = step.ok_or_else(|| StepError::failed("the template has no such step any more"))?;
    if job.voyage.user.is_none() && asks_for_user(job.template) {
        job.voyage.user = user(job.world, job.voyage, job.person).await;
    }
    let plain = variables(job.world, job.voyage, job.template);
    let Some(turns) = turns::turns(&step, &plain)? else {
        return Ok(None);
    };
    // Secrets are for inputs alone, and those of a page that is not asked for none.
    let mut secret = job.secrets.to_json();
    // Which these are must be known: otherwise all of them would be there.
    let asked = pages::asked(job.template, &job.voyage.values)
        .map_err(|complaint| StepError::Failed(complaint.to_string()))?;
    if let Some(secret) = secret.as_object_mut() {
        secret.retain(|name, _| !asked.left_out.contains(name));
    }
    let with_secrets = plain.with("secrets", &secret);
    let mut outputs: Map<String, Value> = Map::new();
    for (at, turn) in turns.into_iter().enumerate() {
        if !turn.is_wanted {
            let key = turn.each.as_ref().map_or(&Value::Null, |each| &each["key"]);
            job.log_once(&format!(
                "left out each.key {key}: the condition does not hold for it"
            ));
            continue;
        }
        job.turn = at;
        let resolved = input::resolve(&step.input, &turn.variables(&with_secrets), "input")
            .map_err(|error| StepError::Failed(error.to_string()))?;
        job.input = resolved.unwrap_or_default();
        let output = actions::act(job, &step.action).await?;
        match &turn.each {
            None => return Ok(Some(job.secrets.hide_in(&output))),
            Some(_) => turns::gather(&mut outputs, output),
        }
    }
    Ok(Some(job.secrets.hide_in(&Value::Object(outputs))))
}

/// What the template shows in the end. Links that come to nothing, or whose condition does not hold, are left out.
pub(crate) fn output(world: &World, voyage: &Voyage, template: &Template) -> Result<Value, String> {
    let plain = variables(world, voyage, template);
    let shown = input::resolve(&template.output, &plain, "output").map_err(|error| error.to_string())?;
    let mut shown = shown.unwrap_or_default();
    for key in ["links", "text"] {
        if let Some(list) = shown.get_mut(key).and_then(Value::as_array_mut) {
            list.retain(|item| item.get("if").is_none_or(|condition| holds(Some(condition))));
            for item in list.iter_mut().filter_map(Value::as_object_mut) {
                item.shift_remove("if");
            }
        }
    }
    if let Some(links) = shown.get_mut("links").and_then(Value::as_array_mut) {
        links.retain(|link| link["url"].is_string() || link["entityRef"].is_string());
    }
    Ok(shown)
}
