//! Runs as scripts: what happens, and what is wanted next.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn run(steps: usize) -> Run {
    let steps: Vec<Value> = (0..steps)
        .map(|at| json!({"id": format!("s{at}"), "action": "a"}))
        .collect();
    let object = json!({
        "apiVersion": crate::template::API_VERSION, "kind": "Template", "metadata": {"name": "t"}, "spec": {"steps": steps},
    });
    Run::of(&Template::read(&object).unwrap(), "t0")
}

fn make(run: &mut Run, at: usize, title: &str) {
    run.steps[at].made.push(Made {
        kind: "object".to_owned(),
        title: title.to_owned(),
        ..Made::default()
    });
}

const PLAIN: Wish = Wish {
    cancel: false,
    keep: false,
    decommission: false,
    attempt: 0,
    generation: 1,
};

fn setback(why: &str, may_pass: bool) -> Setback {
    Setback {
        why: why.to_owned(),
        may_pass,
    }
}

#[test]
fn a_run_goes_forward() {
    let mut run = run(2);
    assert_eq!(next(&run, PLAIN), Next::Begin(0));
    run.begin(0, "t1");
    assert_eq!(next(&run, PLAIN), Next::Resume(0), "who begun it is gone");
    run.complete(0, json!({"a": 1}), "t2");
    assert_eq!(next(&run, PLAIN), Next::Begin(1));
    run.skip(1, "t3");
    assert_eq!(next(&run, PLAIN), Next::Succeed);
    run.succeed(json!({}), "t4");
    assert_eq!(next(&run, PLAIN), Next::Nothing);
    assert_eq!(
        next(&run, Wish { attempt: 5, ..PLAIN }),
        Next::Nothing,
        "nothing is left to do again"
    );
}

#[test]
fn a_failed_run_is_undone_backwards_and_can_be_tried_again() {
    let mut run = run(3);
    for at in 0..2 {
        run.begin(at, "t");
        make(&mut run, at, &format!("thing {at}"));
        make(&mut run, at, &format!("other {at}"));
        run.complete(at, Value::Null, "t");
    }
    run.begin(2, "t");
    make(&mut run, 2, "half");
    run.fail(2, "no", false, "t");
    assert_eq!(run.phase, Phase::Undoing);
    let mut order = Vec::new();
    while let Next::Undo(step, made) = next(&run, PLAIN) {
        order.push(run.steps[step].made[made].title.clone());
        run.undone(step, made);
    }
    assert_eq!(order, ["half", "other 1", "thing 1", "other 0", "thing 0"]);
    assert_eq!(next(&run, PLAIN), Next::EndUndo);
    run.end_undo("t");
    assert_eq!(
        (run.phase, run.message.as_str()),
        (Phase::Failed, "step \"s2\" failed: no")
    );
    assert_eq!(next(&run, PLAIN), Next::Nothing);
    assert_eq!(next(&run, Wish { attempt: 1, ..PLAIN }), Next::Retry);
    run.retry(1);
    assert_eq!(next(&run, Wish { attempt: 1, ..PLAIN }), Next::Begin(0));
}

#[test]
fn kept_runs_go_on_from_the_failed_step() {
    let mut run = run(2);
    run.begin(0, "t");
    make(&mut run, 0, "thing");
    run.complete(0, Value::Null, "t");
    run.begin(1, "t");
    run.fail(1, "no", true, "t");
    assert_eq!(run.phase, Phase::Failed);
    run.retry(1);
    assert_eq!(next(&run, PLAIN), Next::Begin(1));
    assert_eq!(run.steps[0].made.len(), 1, "what is there is not forgotten");
}

#[test]
fn decommission_is_the_way_back() {
    let mut run = run(1);
    run.begin(0, "t");
    make(&mut run, 0, "thing");
    run.complete(0, Value::Null, "t");
    run.succeed(Value::Null, "t");
    let wish = Wish {
        decommission: true,
        ..PLAIN
    };
    assert_eq!(next(&run, wish), Next::Decommission);
    run.decommission();
    assert_eq!(next(&run, wish), Next::Undo(0, 0));
    run.undone(0, 0);
    run.end_undo("t");
    assert_eq!(
        (run.phase, next(&run, wish)),
        (Phase::Decommissioned, Next::Nothing)
    );
}

#[test]
fn what_cannot_be_undone_is_said_and_taken_up_again_when_somebody_wishes() {
    let mut run = run(1);
    run.begin(0, "t");
    make(&mut run, 0, "thing");
    run.fail(0, "no", false, "t");
    let mut tries = 0;
    while let Next::Undo(step, made) = next(&run, PLAIN) {
        run.undo_failed(step, made, &setback("forbidden", false), PLAIN.generation, "t");
        tries += 1;
    }
    assert_eq!(tries, MAX_UNDO);
    assert_eq!(next(&run, PLAIN), Next::EndUndo);
    run.end_undo("t");
    assert_eq!(run.phase, Phase::Failed);
    assert_eq!(
        run.message,
        "step \"s0\" failed: no; still there: thing (forbidden)"
    );
    assert_eq!(next(&run, PLAIN), Next::Nothing);

    // Each wish is a new one: somebody without the right, and then somebody who has it.
    for generation in 2..4 {
        let wish = Wish {
            decommission: true,
            generation,
            ..PLAIN
        };
        assert_eq!(next(&run, wish), Next::Decommission, "wish {generation}");
        run.decommission();
        assert!(!run.message.contains("still there"), "{}", run.message);
        if generation == 3 {
            run.undone(0, 0);
        }
        while let Next::Undo(step, made) = next(&run, wish) {
            run.undo_failed(step, made, &setback("forbidden", false), generation, "t");
        }
        run.end_undo("t");
        assert_eq!(next(&run, wish), Next::Nothing);
    }
    assert_eq!(run.phase, Phase::Decommissioned);
    assert_eq!(run.message, "step \"s0\" failed: no");
}

#[test]
fn a_cause_that_may_pass_is_waited_for_with_pauses_that_grow() {
    let mut run = run(1);
    run.begin(0, "t");
    make(&mut run, 0, "thing");
    run.complete(0, Value::Null, "t");
    run.succeed(Value::Null, "t");
    run.decommission();
    let mut pauses = Vec::new();
    for _ in 0..20 {
        assert_eq!(next(&run, PLAIN), Next::Undo(0, 0));
        let pause = run.undo_failed(0, 0, &setback("timeout", true), 1, "t");
        pauses.push(pause.unwrap().as_secs());
    }
    assert_eq!(pauses[..5], [1, 2, 4, 8, 16]);
    assert_eq!(pauses[19], 300);
    assert_eq!(run.steps[0].log.len(), 1, "what is said once is enough");
    assert_eq!(run.message, "still there: thing (timeout)");
    run.retry_at(0, 0, "later");
    run.hurry();
    assert_eq!(
        run.steps[0].made[0].retry_at, "",
        "whoever wishes something does not wait"
    );
    assert!(run.undo_waits(0, 0, "t"));
    assert!(!run.undo_waits(0, 0, "t"), "it is said once");
    assert!(run.message.contains("not yet gone"), "{}", run.message);
    run.undone(0, 0);
    run.end_undo("t");
    assert_eq!((run.phase, run.message.as_str()), (Phase::Decommissioned, ""));
}

#[test]
fn a_step_of_which_a_part_is_gone_is_done_again() {
    let mut run = run(1);
    run.begin(0, "t");
    make(&mut run, 0, "stays");
    make(&mut run, 0, "goes");
    run.complete(0, Value::Null, "t");
    run.succeed(Value::Null, "t");
    run.decommission();
    run.undone(0, 1);
    while let Next::Undo(step, made) = next(&run, PLAIN) {
        run.undo_failed(step, made, &setback("forbidden", false), 1, "t");
    }
    run.end_undo("t");
    run.retry(1);
    assert_eq!(next(&run, PLAIN), Next::Begin(0));
    assert_eq!(run.steps[0].made.len(), 1);
    assert_eq!(run.steps[0].made[0].attempts, 0);
}

/// The numbers of everything that is told of a run.
fn told(run: &Run) -> Vec<u64> {
    let mut all = vec![run.end_event];
    for step in &run.steps {
        all.extend([step.begun_event, step.ended_event]);
        all.extend(step.log.iter().map(|line| line.event));
    }
    all.retain(|number| *number > 0);
    all.sort_unstable();
    all
}

#[test]
fn what_was_told_keeps_its_number() {
    let mut run = run(2);
    run.begin(0, "t");
    run.log(0, "t", "one");
    make(&mut run, 0, "thing");
    run.complete(0, Value::Null, "t");
    run.begin(1, "t");
    let before = told(&run);
    // A line of an earlier step comes later than what was told of a later one.
    run.fail(1, "no", false, "t");
    run.log(0, "t", "taken back");
    run.undone(0, 0);
    run.end_undo("t");
    let first_end = run.end_event;
    assert!(
        told(&run)
            .iter()
            .filter(|number| !before.contains(number))
            .all(|number| *number > 4)
    );
    assert_eq!(run.end_event, run.events, "the end comes last");
    run.retry(1);
    run.begin(0, "t");
    assert!(
        run.steps[0].begun_event > first_end,
        "who heard the end hears what comes after"
    );
    run.complete(0, Value::Null, "t");
    run.skip(1, "t");
    run.succeed(Value::Null, "t");
    assert!(run.end_event > run.steps[1].ended_event);
    let all = told(&run);
    let mut once = all.clone();
    once.dedup();
    assert_eq!(all, once, "no number is given twice");
}

#[test]
fn outputs_that_cannot_be_kept_are_refused() {
    assert!(fits(&json!({"a": "x".repeat(1000)})).is_ok());
    let why = fits(&json!("x".repeat(MAX_OUTPUT))).unwrap_err();
    assert!(why.contains("65538 bytes"), "{why}");
}

#[test]
fn stopping_undoes_too() {
    let mut run = run(2);
    run.begin(0, "t");
    make(&mut run, 0, "thing");
    assert_eq!(
        next(
            &run,
            Wish {
                cancel: true,
                ..PLAIN
            }
        ),
        Next::Cancel
    );
    run.cancel(false, "t");
    assert_eq!(next(&run, PLAIN), Next::Undo(0, 0));
    run.undone(0, 0);
    run.end_undo("t");
    assert_eq!(run.phase, Phase::Cancelled);
}

#[test]
fn logs_are_bounded() {
    let mut run = run(1);
    for at in 0..500 {
        run.log(0, "t", &format!("{at} {}", "x".repeat(5000)));
    }
    assert_eq!(run.steps[0].log.len(), MAX_LINES);
    assert!(run.steps[0].log[0].text.starts_with("300 "));
    let bytes: usize = run.steps[0].log.iter().map(|line| line.text.len()).sum();
    assert!(bytes < MAX_LINES * (MAX_LINE + 10));
}

proptest! {
    /// Whatever happens in whatever order, a run ends, everything that it made is undone if it failed, and its record can be read again.
    #[test]
    fn runs_end(choices in proptest::collection::vec(0_u8..6, 0..60), keep: bool) {
        let mut run = run(4);
        let mut wish = Wish { keep, ..PLAIN };
        let mut choices = choices.into_iter();
        for _ in 0..200 {
            let text = serde_json::to_string(&run).unwrap();
            let read: Run = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &run);
            let choice = choices.next().unwrap_or(0);
            match next(&run, wish) {
                Next::Start | Next::Retry | Next::Decommission => prop_assert!(false, "nobody wished it"),
                Next::Begin(at) => run.begin(at, "t"),
                Next::Resume(at) => match choice {
                    0 | 1 => run.complete(at, Value::Null, "t"),
                    2 => run.skip(at, "t"),
                    3 => { make(&mut run, at, "x"); run.complete(at, Value::Null, "t"); }
                    4 => { make(&mut run, at, "x"); run.fail(at, "no", keep, "t"); }
                    _ => wish.cancel = true,
                },
                Next::Cancel => run.cancel(keep, "t"),
                Next::Succeed => run.succeed(Value::Null, "t"),
                Next::Undo(step, made) if choice == 5 => { run.undo_failed(step, made, &setback("no", false), 1, "t"); }
                Next::Undo(step, made) => run.undone(step, made),
                Next::EndUndo => run.end_undo("t"),
                Next::Nothing => break,
            }
        }
        prop_assert!(run.phase.is_over());
        let left = run.steps.iter().flat_map(|step| &step.made).filter(|made| !made.undone).count();
        if run.phase != Phase::Succeeded && !keep && !run.message.contains("still there") {
            prop_assert_eq!(left, 0);
        }
    }
}
