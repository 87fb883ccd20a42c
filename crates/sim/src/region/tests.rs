//! Does EC2 answer here as it does elsewhere?

use nodemolt_core::bootstrap::IpFamily;
use nodemolt_core::catalog::{ImageQuery, Outcome, ParameterQuery, Query};
use nodemolt_core::launch::{Capacity, Occasion, Settings, specify};
use nodemolt_core::seen::{Choice, FrozenRequest, NetworkAsk, Selects};
use nodemolt_engine::port::{LaunchRequest, MachineState};

use super::*;
use crate::act::{ImageName, Publication};
use crate::dice::Dice;
use crate::scenario::Scenario;

const OLD: &str = "amazon-eks-node-al2023-arm64-standard-1.33-v20260610";
const NEW: &str = "amazon-eks-node-al2023-arm64-standard-1.33-v20260730";
const POINTER: &str =
    "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/arm64/standard/recommended/image_id";

fn now() -> Timestamp {
    "2026-08-01T00:00:00Z".parse().unwrap()
}

fn later(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

fn name(name: &str) -> ImageName {
    ImageName::Name(name.to_owned())
}

fn region() -> Region {
    let text = "
apiVersion: nodemolt.dev/sim
kind: Simulation
start: 2026-08-01
reservations:
  - {id: cr-1, instanceType: m7g.large, zone: eu-central-1a, count: 1}
";
    let scenario = Scenario::read("test", text).unwrap();
    let mut region = Region::new(&scenario.simulation, Trace::default());
    region.publish(&Publication::of(OLD), now()).unwrap();
    region.publish(&Publication::of("golden-1"), now()).unwrap();
    let term = Selects { tags: [("team".to_owned(), None)].into(), ..Selects::default() };
    let ask = NetworkAsk {
        subnets: vec![term.clone()],
        security_groups: vec![term],
        reservations: Vec::new(),
    };
    region.provide(&ask, Written::default());
    region
}

fn listed(region: &Region, query: &str, at: Timestamp) -> Vec<String> {
    let seen = region.ask(&query.parse().unwrap(), at);
    assert_eq!(seen.outcome, Outcome::Complete);
    seen.images.into_iter().map(|it| it.name).collect()
}

#[test]
fn images_are_listed_by_every_filter_that_is_given() {
    let mut region = region();
    let tagged = Publication { tags: [("a".into(), "b".into())].into(), ..Publication::of("x") };
    region.publish(&tagged, now()).unwrap();
    for (query, wanted) in [
        ("owner=amazon", vec![OLD]),
        ("owner=self", vec!["golden-1", "x"]),
        ("owner=602401143452", vec![OLD]),
        ("owner=amazon,owner=self,name=*-1.33-*", vec![OLD]),
        ("name=golden-?", vec!["golden-1"]),
        ("owner=amazon,name=golden-1", vec![]),
        ("tag:a=b", vec!["x"]),
        ("tag:a=*", vec!["x"]),
        ("tag:a=c", vec![]),
        ("region=us-east-1,owner=amazon", vec![]),
        ("region=eu-central-1,owner=amazon", vec![OLD]),
        (&format!("public-ssm-parameter-name={POINTER}"), vec![OLD]),
    ] {
        let mut found = listed(&region, query, now());
        found.sort();
        assert_eq!(found, wanted, "{query}");
    }
}

#[test]
fn who_hides_an_image_hides_it_from_others_first() {
    for (change, query, wanted) in [
        ("deprecate", "owner=amazon", 0),
        ("deprecate", "owner=amazon,include-deprecated", 1),
        ("disable", "owner=amazon", 0),
        ("disable", "owner=amazon,include-disabled", 1),
        ("unshare", "owner=amazon,include-disabled,include-deprecated", 0),
        ("deregister", "owner=amazon,include-disabled,include-deprecated", 0),
    ] {
        let mut region = region();
        let image = name(OLD);
        let id = match change {
            "deprecate" => region.deprecate(&image, now()),
            "disable" => region.disable(&image, now()),
            "unshare" => region.unshare(&image, now()),
            _ => region.deregister(&image, now()),
        };
        assert_eq!(listed(&region, query, later(1)).len(), wanted, "{change} {query}");
        let bootable = change == "deprecate";
        assert_eq!(region.launchable(&id.unwrap()), bootable, "{change}");
    }
    let mut region = region();
    region.deprecate(&name("golden-1"), now()).unwrap();
    assert_eq!(listed(&region, "owner=self", later(1)), ["golden-1"], "its own publisher sees it");
}

#[test]
fn parameters_keep_their_versions() {
    let mut region = region();
    let ask = |region: &Region, name: &str| {
        let query = ParameterQuery { names: [name.to_owned()].into(), ..ParameterQuery::default() };
        let seen = region.ask(&Query::Parameters(query), now());
        seen.parameters.first().and_then(|it| it.newest().cloned())
    };
    let old = region.find_image(&name(OLD)).unwrap();
    let new = region.publish(&Publication::of(NEW), now()).unwrap();
    assert_eq!(ask(&region, POINTER).unwrap().text, new.to_string());
    region.move_parameter(POINTER, &ImageName::Id(old.clone()), now()).unwrap();
    let newest = ask(&region, POINTER).unwrap();
    assert_eq!((newest.text, newest.version), (old.to_string(), Some(3)));
    assert_eq!(ask(&region, &format!("{POINTER}:2")).unwrap().text, new.to_string());
    assert_eq!(ask(&region, "/nobody"), None);
    let told = region.move_parameter("/nobody", &name(OLD), now()).unwrap_err();
    assert!(told.contains(POINTER), "{told}");
    let path = ParameterQuery { paths: ["/aws/service/eks/".into()].into(), ..Default::default() };
    let found = region.ask(&Query::Parameters(path), now()).parameters.len();
    assert_eq!(found, 3, "the pointer and one for each release");
}

#[test]
fn a_throttled_service_says_so_and_nothing_else() {
    let mut region = region();
    region.throttled.insert(Counterpart::Ssm);
    let images = Query::Images(ImageQuery::default());
    let parameters = Query::Parameters(ParameterQuery::default());
    assert_eq!(region.ask(&images, now()).outcome, Outcome::Complete);
    let seen = region.ask(&parameters, now());
    assert_eq!((seen.outcome, seen.parameters.len()), (Outcome::Throttled, 0));
}

/// A template that boots the old image, and a request for one machine with it.
fn request(region: &mut Region, token: &str, zones: &[&str]) -> LaunchRequest {
    let image = region.find_image(&name(OLD)).unwrap();
    let settings = Settings::of("general", nodemolt_fit::Family::Al2023, "role");
    let groups = region.security_groups.iter().map(|it| it.id.parse().unwrap()).collect();
    let occasion = Occasion {
        cluster: "simulated".to_owned(),
        pool: "web".to_owned(),
        region: None,
        ip_family: IpFamily::V4,
        image: image.clone(),
        instance_types: ["m7g.large".to_owned()].into(),
        zones: zones.iter().map(|it| (*it).to_owned()).collect(),
        capacity: Capacity::OnDemand { open: false },
        security_groups: groups,
        instance_profile: "profile".to_owned(),
        user_data: None,
        efa: 0,
        tenancy: None,
        partition: None,
        enclave: false,
    };
    let template = specify(&settings, &occasion).unwrap().template;
    region.prepare(&template);
    let choices = zones.iter().map(|zone| Choice {
        template: template.name(),
        image: image.clone(),
        instance_type: "m7g.large".to_owned(),
        zone: (*zone).to_owned(),
        subnet: region.subnets.iter().find(|it| it.zone == *zone).unwrap().id.clone(),
    });
    let request = FrozenRequest {
        capacity_type: "on-demand".to_owned(),
        choices: choices.collect(),
        context: None,
        tags: [("kubernetes.io/cluster/simulated".to_owned(), "owned".to_owned())].into(),
    };
    LaunchRequest { token: token.to_owned(), request }
}

#[test]
fn a_token_answers_for_ever_what_it_answered_once() {
    let mut region = region();
    let mut dice = Dice::new(1);
    let by = Actor::Operator(0);
    let one = request(&mut region, "a-1", &["eu-central-1a", "eu-central-1b"]);
    let (first, due) = region.launch(by, &one, now(), &mut dice);
    let first = first.unwrap();
    assert_eq!((due.len(), first.zone.as_str()), (1, "eu-central-1a"));
    region.terminate(by, &first.machine.0, later(5), &mut dice);
    let (again, due) = region.launch(by, &one, later(900), &mut dice);
    assert_eq!((again.unwrap(), due.len()), (first, 0), "the same machine, ended as it is");
    let mut other = one.clone();
    other.request.choices.pop();
    assert_eq!(
        region.launch(by, &other, later(901), &mut dice).0,
        Err(LaunchError::OtherParameters)
    );

    // Assumption 1: an empty fleet stays empty for its token, and not for another.
    region.no_capacity.push((Some("m7g.large".to_owned()), None));
    let empty = request(&mut region, "b-1", &["eu-central-1a"]);
    let lacking = LaunchError::NoCapacity(vec![("m7g.large".into(), "eu-central-1a".into())]);
    assert_eq!(region.launch(by, &empty, later(902), &mut dice).0, Err(lacking.clone()));
    region.no_capacity.clear();
    assert_eq!(region.launch(by, &empty, later(903), &mut dice).0, Err(lacking));
    let fresh = LaunchRequest { token: "b-2".to_owned(), ..empty };
    assert!(region.launch(by, &fresh, later(904), &mut dice).0.is_ok());
}

#[test]
fn a_launch_goes_on_to_the_next_choice_and_says_what_stands_against_all() {
    let mut dice = Dice::new(1);
    let by = Actor::Operator(0);
    let mut region = region();
    region.no_capacity.push((None, Some("eu-central-1a".to_owned())));
    let both = request(&mut region, "a-1", &["eu-central-1a", "eu-central-1b"]);
    assert_eq!(region.launch(by, &both, now(), &mut dice).0.unwrap().zone, "eu-central-1b");

    let mut lost = request(&mut region, "c-1", &["eu-central-1b"]);
    lost.request.choices[0].template = "gone".to_owned();
    let answer = region.launch(by, &lost, now(), &mut dice).0;
    assert_eq!(answer, Err(LaunchError::NoSuchTemplate("gone".to_owned())));

    let mut wrong = request(&mut region, "d-1", &["eu-central-1b"]);
    wrong.request.choices[0].instance_type = "m7i.large".to_owned();
    let answer = region.launch(by, &wrong, now(), &mut dice).0;
    assert!(matches!(answer, Err(LaunchError::Refused(_))), "{answer:?}");

    region.deregister(&name(OLD), now()).unwrap();
    let image = both.request.choices[0].image.clone();
    let gone = LaunchRequest { token: "e-1".to_owned(), ..both };
    let answer = region.launch(by, &gone, now(), &mut dice).0;
    assert_eq!(answer, Err(LaunchError::NoSuchImage(image)));
}

#[test]
fn a_machine_lives_and_is_seen_a_little_later() {
    let mut region = region();
    let mut dice = Dice::new(4);
    let by = Actor::Operator(0);
    let one = request(&mut region, "a-1", &["eu-central-1a"]);
    let (launched, due) = region.launch(by, &one, now(), &mut dice);
    let id = launched.unwrap().machine.0;
    assert!(region.machines("simulated", now()).is_empty(), "not at once");
    let seen = region.machines("simulated", later(15));
    assert_eq!(seen.iter().map(|it| it.state).collect::<Vec<_>>(), [MachineState::Pending]);
    assert!(region.machines("another", later(15)).is_empty());
    let (at, event) = due[0].clone();
    let (happened, _) = region.on(&event, at);
    assert_eq!(happened, Some(Happened::Runs(id.clone())));

    let due = region.terminate(by, &id, later(60), &mut dice);
    assert_eq!(region.machine(&id).unwrap().state, MachineState::ShuttingDown);
    assert!(region.terminate(by, &id, later(61), &mut dice).is_empty(), "no error, and no more");
    let (at, event) = due[0].clone();
    let (happened, due) = region.on(&event, at);
    assert_eq!(happened, Some(Happened::Ended(id.clone())));
    assert_eq!(region.machines("simulated", at).len(), 1, "it is shown for a while");
    let (at, event) = due[0].clone();
    region.on(&event, at);
    assert!(region.machines("simulated", at).is_empty());
}

#[test]
fn the_network_is_what_terms_select() {
    let region = region();
    let ask = |tags: &[(&str, Option<&str>)]| NetworkAsk {
        subnets: vec![Selects {
            tags: tags
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned)))
                .collect(),
            ..Selects::default()
        }],
        ..NetworkAsk::default()
    };
    assert_eq!(region.network(&ask(&[("team", None)])).subnets.len(), 3, "one for each zone");
    assert_eq!(region.network(&ask(&[("team", Some("yes"))])).subnets.len(), 3);
    assert!(region.network(&ask(&[("team", Some("no"))])).subnets.is_empty());
    assert!(region.network(&ask(&[("crew", None)])).subnets.is_empty());
    let reserved = NetworkAsk {
        reservations: vec![Selects { id: Some("cr-1".to_owned()), ..Selects::default() }],
        ..NetworkAsk::default()
    };
    assert_eq!(region.network(&reserved).reservations[0].remaining, 1);
}

/// EC2's lists may lag, and so may SSM's: what was launched is not there yet, what ended still runs.
#[test]
fn lists_that_lag_say_what_was_so_then() {
    let mut region = region();
    let by = Actor::Operator(0);
    let mut dice = Dice::new(4);
    region.publish(&Publication::of(NEW), later(100)).unwrap();
    region.disable(&name("golden-1"), later(100)).unwrap();
    let one = request(&mut region, "a-1", &["eu-central-1a"]);
    let id = region.launch(by, &one, later(80), &mut dice).0.unwrap().machine.0;
    region.terminate(by, &id, later(100), &mut dice);
    let new = super::images::id_of(NEW).to_string();
    for (stale, at, there) in [(0, 101, true), (60, 159, false), (60, 160, true)] {
        for service in [Counterpart::Ec2, Counterpart::Ssm] {
            region.stale.insert(service, SignedDuration::from_secs(stale));
        }
        let at = later(at);
        let names = listed(&region, "owner=amazon,owner=self,name=*", at);
        assert_eq!(names.contains(&NEW.to_owned()), there, "{stale} {at}");
        assert_eq!(names.contains(&"golden-1".to_owned()), !there, "{stale} {at}");
        let query =
            ParameterQuery { names: [POINTER.to_owned()].into(), ..ParameterQuery::default() };
        let seen = region.ask(&Query::Parameters(query), at);
        let text = seen.parameters.first().and_then(|it| it.newest()).map(|it| it.text.clone());
        assert_eq!(text.as_ref() == Some(&new), there, "{stale} {at}");
        let states: Vec<MachineState> =
            region.machines("simulated", at).iter().map(|it| it.state).collect();
        let state = if there { MachineState::ShuttingDown } else { MachineState::Pending };
        assert_eq!(states, [state], "{stale} {at}");
    }
    region.stale.insert(Counterpart::Ec2, SignedDuration::from_secs(60));
    assert!(region.machines("simulated", later(130)).is_empty(), "it was launched since");
}
