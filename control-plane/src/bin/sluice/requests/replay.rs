//! `sluice requests replay`: what was decided beside what is decided again.

use serde::Serialize;

use common::pb::admin as pb;
use common::record::words::{end, fate};

use crate::args::Format;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, table};

#[derive(Serialize)]
struct ReplayJson<'a> {
    request_id: &'a str,
    revision: u64,
    same: bool,
    was: CourseJson<'a>,
    again: CourseJson<'a>,
}

#[derive(Serialize)]
struct CourseJson<'a> {
    steps: Vec<StepJson<'a>>,
    end: String,
}

#[derive(Serialize)]
struct StepJson<'a> {
    channel: &'a str,
    upstream_model: &'a str,
    fate: String,
}

/// Prints both; the exit code says whether they are the same.
pub fn show(answer: &pb::ReplayRequestResponse, output: &mut Output) -> Result<Exit, Fault> {
    let (was, again) = (answer.was.clone().unwrap_or_default(), answer.again.clone().unwrap_or_default());
    let exit = if answer.is_same { Exit::Done } else { Exit::Different };
    match output.format() {
        Format::Json => output.json(&ReplayJson {
            request_id: &answer.request_id,
            revision: answer.revision,
            same: answer.is_same,
            was: json(&was),
            again: json(&again),
        })?,
        Format::Table => output.text(&text(answer, &was, &again))?,
    }
    Ok(exit)
}

fn text(answer: &pb::ReplayRequestResponse, was: &pb::Course, again: &pb::Course) -> String {
    if answer.is_same {
        return format!("the same, over the chain of revision {}\n{}", answer.revision, course(was));
    }
    format!(
        "it was\n{}\nover the chain of revision {} it is\n{}",
        course(was),
        answer.revision,
        course(again)
    )
}

fn course(course: &pb::Course) -> String {
    if course.steps.is_empty() {
        return format!("{}, before any channel was considered\n", end(course));
    }
    let rows = course.steps.iter().enumerate().map(|(index, step)| {
        vec![cell((index + 1).to_string()), cell(&step.channel), cell(&step.upstream_model), cell(fate(step))]
    });
    format!("{}{}\n", table(&[">HOP", "CHANNEL", "UPSTREAM MODEL", "RESULT"], rows), end(course))
}

fn json(course: &pb::Course) -> CourseJson<'_> {
    CourseJson { steps: course.steps.iter().map(step_json).collect(), end: end(course) }
}

fn step_json(step: &pb::CourseStep) -> StepJson<'_> {
    StepJson { channel: &step.channel, upstream_model: &step.upstream_model, fate: fate(step) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    fn course_of(steps: &[(&str, pb::CourseFate, &str)], end: pb::CourseEnd) -> pb::Course {
        let step = |(channel, fate, why): &(&str, pb::CourseFate, &str)| pb::CourseStep {
            channel: (*channel).to_owned(),
            upstream_model: "m".to_owned(),
            fate: (*fate).into(),
            why: (*why).to_owned(),
        };
        pb::Course { steps: steps.iter().map(step).collect(), end: end.into(), ..pb::Course::default() }
    }

    #[test]
    fn what_differs_stands_below_what_was() {
        use pb::CourseFate as F;
        let was =
            course_of(&[("a", F::Failed, "overloaded"), ("b", F::Answered, "")], pb::CourseEnd::Answered);
        let again = course_of(&[("c", F::Unknown, "")], pb::CourseEnd::Unknown);
        let answer = pb::ReplayRequestResponse { revision: 43, ..pb::ReplayRequestResponse::default() };
        let want = "\
it was
HOP  CHANNEL  UPSTREAM MODEL  RESULT
  1  a        m               overloaded
  2  b        m               answered
the caller got its answer

over the chain of revision 43 it is
HOP  CHANNEL  UPSTREAM MODEL  RESULT
  1  c        m               asked; how it would answer is not known
what the caller would get is not known
";
        assert_eq!(plain(&text(&answer, &was, &again)), want);
        let same = pb::ReplayRequestResponse { is_same: true, ..answer };
        assert!(text(&same, &was, &was).starts_with("the same, over the chain of revision 43\n"));
    }
}
