//! Do our validator and the API server judge the same cases alike, in the same words?

use std::{fmt::Write as _, path::PathBuf, sync::Arc};

use nodemolt_api::{
    admission::{
        Validator,
        cases::{self, Answer, Case},
        coverage,
    },
    crd::{self, Crd},
};
use serde_json::Value;
use tokio::task::JoinSet;

use super::{
    as_written, fixed_names, repository,
    server::{Refused, Resource, Server, Write},
    standalone, yaml_files,
};

/// Several, so that nobody waits for one answer before he asks the next; few, because the server has two cores.
const IN_FLIGHT: usize = 8;

/// One kind in one version, with its cases.
pub(super) struct Table {
    pub(super) resource: Resource,
    pub(super) validator: Validator,
    pub(super) cases: Vec<Case>,
}

/// A table for each version that is served.
pub(super) fn tables(crd: &Crd) -> Vec<Table> {
    let definition = (crd.definition)();
    let stored = definition.spec.versions.iter().find(|it| it.storage).unwrap();
    // One spec in two groups has its cases once.
    let written = match crd.kind {
        "EC2NodeClass" => "karpenter.k8s.aws/v1".to_owned(),
        _ => format!("{}/{}", crd.group, stored.name),
    };
    let plural = &definition.spec.names.plural;
    let folder: PathBuf =
        repository().join("crates/api/tests/admission").join(&written).join(plural);
    let texts: Vec<String> =
        yaml_files(&folder).iter().map(|it| std::fs::read_to_string(it).unwrap()).collect();
    let served = definition.spec.versions.iter().filter(|it| it.served);
    served
        .map(|version| {
            let group_version = format!("{}/{}", crd.group, version.name);
            let validator = Validator::new(&definition).unwrap();
            let (_, root) = validator.versions().find(|it| it.0 == version.name).unwrap();
            let mut all = Vec::new();
            let mut first_base = None;
            for text in &texts {
                let (base, cases) = cases::read(text).unwrap();
                first_base = first_base.or(base);
                all.extend(cases);
            }
            all.extend(first_base.iter().flat_map(|it| coverage::beyond_limits(root, it)));
            for case in &mut all {
                for object in [Some(&mut case.object), case.old.as_mut()].into_iter().flatten() {
                    if object["apiVersion"] == *written {
                        object["apiVersion"] = Value::String(group_version.clone());
                    }
                }
            }
            let resource = Resource { group_version, plural: plural.clone() };
            Table { resource, validator, cases: all }
        })
        .collect()
}

/// What the server says to each case, in their order. It is left as it was.
pub(super) async fn ask_all(server: &Server, resource: &Resource, cases: &[Case]) -> Vec<Answer> {
    let mut answers: Vec<Option<Answer>> = vec![None; cases.len()];
    // What leaves nothing behind is asked side by side.
    let mut asked = JoinSet::new();
    let resource = Arc::new(resource.clone());
    for (at, case) in cases.iter().enumerate().filter(|it| leaves_nothing(it.1)) {
        if asked.len() == IN_FLIGHT {
            let (at, answer) = asked.join_next().await.unwrap().unwrap();
            answers[at] = Some(answer);
        }
        let (server, resource, object) =
            (server.clone(), Arc::clone(&resource), case.object.clone());
        asked.spawn(async move {
            (at, server.create(&resource, &object, Write::Dry).await.map_err(told))
        });
    }
    while let Some(answered) = asked.join_next().await {
        let (at, answer) = answered.unwrap();
        answers[at] = Some(answer);
    }
    // The others need something to be there, and many the same name.
    for (at, case) in cases.iter().enumerate().filter(|it| !leaves_nothing(it.1)) {
        answers[at] = Some(ask_of_something(server, &resource, case).await);
    }
    answers.into_iter().map(|it| it.expect("each was asked")).collect()
}

fn leaves_nothing(case: &Case) -> bool {
    case.old.is_none() && !case.status
}

async fn ask_of_something(server: &Server, resource: &Resource, case: &Case) -> Answer {
    let first = case.old.as_ref().unwrap_or(&case.object);
    let mut there = match server.create(resource, first, Write::Stays).await {
        Ok(there) => there,
        Err(refused) => {
            let mut causes = told(refused);
            if case.old.is_some() {
                causes.insert(0, ("old".to_owned(), "is refused itself".to_owned()));
            }
            return Err(causes);
        }
    };
    let mut answer = Ok(Value::Null);
    if case.old.is_some() && first.get("status").is_some() {
        match server.replace(resource, &there, "/status", first, Write::Stays).await {
            Ok(with_status) => there = with_status,
            Err(refused) => answer = Err(told(refused)),
        }
    }
    if answer.is_ok() {
        let part = if case.status { "/status" } else { "" };
        answer =
            server.replace(resource, &there, part, &case.object, Write::Dry).await.map_err(told);
    }
    server.delete(resource, &there).await;
    answer
}

/// As our validator tells it.
fn told(refused: Refused) -> Vec<(String, String)> {
    if refused.causes.is_empty() {
        // What it cannot read at all has no fields.
        return vec![(String::new(), refused.message)];
    }
    refused.causes
}

#[tokio::test]
async fn every_case_is_judged_by_the_server_as_by_us_and_as_it_says() {
    let server = Server::of(standalone().await).await;
    let _alone = fixed_names().await;
    let mut kinds = JoinSet::new();
    for crd in crd::all() {
        let server = server.clone();
        kinds.spawn(async move {
            let (mut wrong, mut asked) = (String::new(), 0);
            // The versions of a kind share their objects.
            for table in tables(&crd) {
                let answers = ask_all(&server, &table.resource, &table.cases).await;
                asked += answers.len();
                for (case, theirs) in table.cases.iter().zip(&answers) {
                    if let Err(why) = compared(&table, case, theirs) {
                        let _ = writeln!(wrong, "{} `{}` {why}", table.resource.path(), case.name);
                    }
                }
            }
            (wrong, asked)
        });
    }
    let outcomes = kinds.join_all().await;
    let wrong: String = outcomes.iter().map(|it| it.0.as_str()).collect();
    let asked: usize = outcomes.iter().map(|it| it.1).sum();
    println!("{asked} cases");
    assert!(wrong.is_empty(), "of {asked}:\n{wrong}");
    // Fewer would mean that this test no longer finds them.
    assert!(asked > 800, "{asked}");
}

fn compared(table: &Table, case: &Case, theirs: &Answer) -> Result<(), String> {
    cases::judge(case, theirs).map_err(|it| format!("on the server {it}"))?;
    let ours = cases::ask(&table.validator, case);
    cases::agree(&ours, theirs)?;
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return Ok(()) };
    let (ours, theirs) = (as_written(ours), as_written(theirs.clone()));
    if ours == theirs {
        return Ok(());
    }
    Err(format!("is stored otherwise, we say\n    {ours}\n  they say\n    {theirs}"))
}
