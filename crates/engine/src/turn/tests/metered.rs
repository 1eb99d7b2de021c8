//! Tests of what the model gateway counts, against what the provider reports.

use super::{TurnInput, TurnTest};
use domain::{
    run::RunError,
    usage::{Cost, Usage},
};
use providers::{TurnEnd, TurnEvent};

fn metered(model: &str, output_tokens: u64) -> TurnInput {
    let usage = [(Some(model.to_owned()), Usage { output_tokens, ..Usage::default() })];
    TurnInput::Metered { usage: usage.into(), is_refused: false }
}

#[test]
fn what_the_gateway_counts_is_not_counted_twice() {
    let usage = Usage { output_tokens: 10, ..Usage::default() };
    let report = || TurnEvent::Usage { usage, model: None, cost: Some(Cost::from_nanos(1)) };
    let model = "claude-sonnet-4-5";
    // Reported by the program with the vendor's own price, before or after the gateway has counted it.
    for test in [
        TurnTest::new().input(metered(model, 10)).report(report()),
        TurnTest::new().report(report()).input(metered(model, 10)),
    ] {
        let test = test.end(TurnEnd::Completed);
        assert_eq!((test.machine.answer().usage, test.machine.answer().cost), (usage, Some(Cost::from_nanos(1))));
    }
    // A call of a tool with the token of the program: nobody else reports it.
    let test = TurnTest::new().report(report()).input(metered(model, 15)).end(TurnEnd::Completed);
    let answer = test.machine.answer();
    assert_eq!((answer.usage.output_tokens, answer.cost), (15, Some(Cost::from_nanos(15 * 15_000))));
    let test = TurnTest::new().input(metered("no-such-model", 15)).end(TurnEnd::Completed);
    assert_eq!((test.machine.answer().usage.output_tokens, test.machine.answer().cost), (15, None));
}

#[test]
fn the_cost_of_calls_at_the_gateway_counts_before_the_program_reports_them() {
    let test = TurnTest::new().input(metered("claude-sonnet-4-5", 10));
    assert_eq!(test.machine.unreported_cost(), Cost::from_nanos(10 * 15_000));
    let usage = Usage { output_tokens: 10, ..Usage::default() };
    let test = test.report(TurnEvent::Usage { usage, model: Some("claude-sonnet-4-5".into()), cost: None });
    assert_eq!(test.machine.unreported_cost(), Cost::ZERO);
}

#[test]
fn a_call_that_is_refused_at_the_gateway_ends_the_run_with_what_it_has() {
    let test = TurnTest::new().input(metered("claude-sonnet-4-5", 10)).input(TurnInput::BudgetUsedUp);
    // The program reports the call that is counted already.
    let test = test.report(TurnEvent::ModelCall).text("so far");
    assert!(!test.machine.is_stopping(), "the answer may be complete");
    let refused = TurnInput::Metered { usage: Default::default(), is_refused: true };
    let failure = TurnEnd::Failed(RunError::new("program_failed", "402"));
    let test = test.input(refused).text(" and more").end(failure);
    assert_eq!(test.response_text(), "so far");
    assert_eq!(test.finish().error.as_ref().unwrap().code, "limit_budget");
}
