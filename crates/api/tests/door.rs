//! Bad files are refused well, and good ones are read as they were meant.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::{fmt::Write as _, time::Instant};

use nodemolt_api::{
    ec2nodeclass::EC2NodeClass,
    file::{Located, Object, Source, read},
    imagepolicy::{AgeFrom, DeprecatedImages, PinnedIds},
    problem::{Problem, Severity},
};
use proptest::prelude::*;

fn source(text: &str) -> Source {
    Source { name: "f.yaml".to_owned(), text: text.to_owned() }
}

/// The text without the indentation of its first line.
fn dedent(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text).trim_end_matches([' ', '\n']);
    let width = text.len() - text.trim_start_matches(' ').len();
    text.lines().fold(String::new(), |all, line| all + line.get(width..).unwrap_or("") + "\n")
}

fn shown(problems: &[Problem]) -> String {
    let mut all = String::new();
    for it in problems {
        let severity = match it.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
            Severity::Note => "note: ",
        };
        writeln!(all, "{severity}{it}").unwrap();
        if let Some(hint) = &it.hint {
            writeln!(all, "  {hint}").unwrap();
        }
    }
    all
}

#[track_caller]
fn check(text: &str, expected: &str) -> Vec<Located<Object>> {
    let (objects, problems) = read(&source(&dedent(text)));
    assert_eq!(shown(&problems), dedent(expected));
    objects
}

#[track_caller]
fn class(text: &str) -> EC2NodeClass {
    let (objects, problems) = read(&source(text));
    assert_eq!(shown(&problems), "");
    match objects.into_iter().map(|it| it.value).next() {
        Some(Object::Class(class)) => class,
        other => panic!("expected a class, found {other:?}"),
    }
}

#[test]
fn a_misspelt_owner_does_not_widen_its_term() {
    let objects = check(
        "
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClass
        metadata:
          name: general
        spec:
          amiFamily: AL2023
          amiSelectorTerms:
            - name: my-ami
              ownr: self
            - name: other
              publisher: me
              requirments: []
          amiMinimunAge: 7d
        ",
        "
        f.yaml:9:7: spec.amiSelectorTerms[0].ownr: unknown field
          did you mean `owner`?
        f.yaml:11:7: spec.amiSelectorTerms[1].publisher: unknown field
          the fields here are alias, tags, id, name, owner, ssmParameter, requirements
        f.yaml:12:7: spec.amiSelectorTerms[1].requirments: unknown field
          did you mean `requirements`?
        f.yaml:13:3: spec.amiMinimunAge: unknown field
          did you mean `amiMinimumAge`?
        ",
    );
    assert!(objects.is_empty());
}

#[test]
fn what_yaml_reads_as_a_number_must_be_quoted() {
    check(
        "
        apiVersion: nodemolt.dev/v1alpha1
        kind: EC2NodeClass
        metadata: {name: general, labels: {tier: 1}}
        spec:
          amiFamily: AL2023
          amiMinimumAge: 7
          amiSelectorTerms:
            - name: a
              owner: 123456789012
            - name: b
              owner: 012345678901
            - name: no
            - tags: {release: 1.31, on: x}
          detailedMonitoring: \"true\"
          ipPrefixCount: many
        ",
        "
        f.yaml:3:42: metadata.labels.tier: expected a string, found the number `1`
          quote it: \"1\"
        f.yaml:6:18: spec.amiMinimumAge: expected a string, found the number `7`
          write the length with its unit, for example `7d`
        f.yaml:9:14: spec.amiSelectorTerms[0].owner: expected a string, found the number `123456789012`
          quote it: \"123456789012\"
        f.yaml:11:14: spec.amiSelectorTerms[1].owner: expected a string, found the number `012345678901`
          quote it: \"012345678901\"; without quotes YAML drops the leading zero or reads it as octal
        f.yaml:12:13: spec.amiSelectorTerms[2].name: expected a string, found the boolean `no`
          quote it: \"no\"
        f.yaml:13:23: spec.amiSelectorTerms[3].tags.release: expected a string, found the number `1.31`
          quote it: \"1.31\"
        f.yaml:13:29: spec.amiSelectorTerms[3].tags: the key `on` reads as `true`
          quote it: \"on\"
        f.yaml:14:23: spec.detailedMonitoring: expected true or false, found the string `true`
        f.yaml:15:18: spec.ipPrefixCount: expected a whole number, found the string `many`
        ",
    );
}

#[test]
fn what_the_api_server_mends_is_read_as_mended() {
    let objects = check(
        "
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClass
        metadata: {generateName: web-, namespace: kube-system}
        spec:
          amiSelectorTerms: [{alias: al2023@latest}]
          tags: {a: null, b: c}
          metadataOptions: {httpPutResponseHopLimit: 2.0}
          kubelet: {maxPods: 1e2}
        ",
        "
        warning: f.yaml:6:10: spec.tags.a: is empty and counts as absent
          give it a value or remove it
        ",
    );
    let Object::Class(class) = &objects[0].value else { panic!("a class") };
    assert_eq!(class.metadata.name, "web-");
    let spec = serde_json::to_value(&class.spec).unwrap();
    assert_eq!(spec["tags"], serde_json::json!({"b": "c"}));
    assert_eq!(spec["metadataOptions"]["httpPutResponseHopLimit"], 2);
    assert_eq!(spec["kubelet"]["maxPods"], 100);
}

#[test]
fn a_pool_that_can_be_applied_and_not_used_is_told_so() {
    check(
        "
        apiVersion: karpenter.sh/v1
        kind: NodePool
        metadata: {name: web, uid: u-1}
        spec:
          limits: {cpu: -1}
          disruption:
            budgets: [{nodes: '1', schedule: 99 99 * * *, duration: 1h}]
          template:
            spec:
              nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}
              requirements:
                - {key: karpenter.sh/capacity-type, operator: In, values: [spott, spot]}
                - {key: karpenter.k8s.aws/instance-foo, operator: Exists}
                - {key: karpenter.k8s.aws/instance-cpu, operator: Exists}
        ",
        "
        warning: f.yaml:5:12: spec.limits.cpu: `-1` is less than nothing: no node can be made
          write how much the pool may have, or 0 for none
        warning: f.yaml:7:28: spec.disruption.budgets[0].schedule: `99 99 * * *` is not a schedule
          write cron's five fields, such as `0 22 * * 1-5`
        warning: f.yaml:12:68: spec.template.spec.requirements[0].values[0]: `spott` is not a capacity type
          did you mean `spot`?
        warning: f.yaml:13:12: spec.template.spec.requirements[1].key: no instance type has the label `karpenter.k8s.aws/instance-foo`
          did you mean `karpenter.k8s.aws/instance-cpu`?
        ",
    );
}

#[test]
fn keys_that_karpenters_definition_refuses_are_refused() {
    check(
        "
        apiVersion: karpenter.sh/v1
        kind: NodePool
        metadata: {name: web}
        spec:
          template:
            metadata:
              labels: {team: web, karpenter.k8s.aws/instance-sise: large, karpenter.sh/owner: me}
            spec:
              nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}
              requirements:
                - {key: karpenter.k8s.aws/instance-famly, operator: In, values: [m5]}
                - {key: sub.karpenter.k8s.aws/a, operator: Exists}
                - {key: karpenter.sh/nodepool, operator: In, values: [web]}
                - {key: kubernetes.io/hostname, operator: Exists}
                - {key: karpenter.sh/registered, operator: Exists}
                - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
                - {key: karpenter.k8s.aws/instance-tenancy, operator: Exists}
                - {key: karpenter.k8s.aws/ec2nodeclass, operator: Exists}
                - {key: example.com/karpenter.sh, operator: Exists}
        ",
        "
        f.yaml:7:7: spec.template.metadata.labels.karpenter.k8s.aws/instance-sise: label domain \"karpenter.k8s.aws\" is restricted
          did you mean `karpenter.k8s.aws/instance-size`?
        f.yaml:7:7: spec.template.metadata.labels.karpenter.sh/owner: label domain \"karpenter.sh\" is restricted
        f.yaml:11:12: spec.template.spec.requirements[0].key: label domain \"karpenter.k8s.aws\" is restricted
          did you mean `karpenter.k8s.aws/instance-family`?
        f.yaml:12:12: spec.template.spec.requirements[1].key: label domain \"karpenter.k8s.aws\" is restricted
        f.yaml:13:12: spec.template.spec.requirements[2].key: label \"karpenter.sh/nodepool\" is restricted
        f.yaml:14:12: spec.template.spec.requirements[3].key: label \"kubernetes.io/hostname\" is restricted
        f.yaml:15:12: spec.template.spec.requirements[4].key: label domain \"karpenter.sh\" is restricted
        ",
    );
}

#[test]
fn wrong_shapes_are_named() {
    check(
        "
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClass
        metadata: {name: general}
        spec:
          amiFamily: [AL2]
          amiSelectorTerms:
            name: my-ami
          tags: {}
          kubelet: {clusterDNS: 10.0.0.10, podsPerCore: lots, anything: {goes: 1}}
          role:
        ---
        apiVersion: karpenter.sh/v1
        kind: NodePool
        metadata: {}
        spec: {template: {spec: {requirements: [{key: a}]}}}
        ",
        "
        f.yaml:5:14: spec.amiFamily: expected a string, found a list
        f.yaml:7:5: spec.amiSelectorTerms: expected a list, found a map
          write each item on its own line after `- `
        f.yaml:9:25: spec.kubelet.clusterDNS: expected a list, found the string `10.0.0.10`
          write each item on its own line after `- `
        f.yaml:9:49: spec.kubelet.podsPerCore: expected a whole number, found the string `lots`
        warning: f.yaml:10:3: spec.role: is empty and counts as absent
          give it a value or remove it
        f.yaml:14:11: metadata: `name` is missing
        f.yaml:15:25: spec.template.spec: `nodeClassRef` is missing
        f.yaml:15:41: spec.template.spec.requirements[0]: `operator` is missing
        ",
    );
}

#[test]
fn a_key_is_written_once() {
    check(
        "
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClass
        metadata: {name: general}
        spec:
          amiSelectorTerms:
            - alias: al2023@latest
              alias: al2@latest
        ",
        "
        f.yaml:7:7: spec.amiSelectorTerms[0].alias: is written twice, first on line 6
          keep one of the two
        ",
    );
}

#[test]
fn a_broken_document_does_not_hide_the_others() {
    let objects = check(
        "
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClass
        spec: [unclosed
        ---
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClass
        metadata: {name: good}
        spec: {amiFamily: AL2023}
        ---
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClass
        metadata: {name: wrong}
        spec: {amiFamily: 3}
        ---
        # Nothing here.
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, name: web}
        ",
        "
        f.yaml:3:7: cannot be read as YAML: unclosed bracket '['
        f.yaml:13:19: spec.amiFamily: expected a string, found the number `3`
          quote it: \"3\"
        note: f.yaml:18:1: kind: ignored: `Deployment` is not read here
          read are EC2NodeClass, NodePool, NodeClaim, ImagePolicy, ImageQuarantine, NodeDisruptionBudget, Replacement, DisruptionLedger, AWSImage
        ",
    );
    assert_eq!(objects.iter().map(|it| it.value.name()).collect::<Vec<_>>(), ["good"]);
}

#[test]
fn tabs_do_not_indent() {
    check(
        "
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClass
        spec:
        \tamiFamily: AL2023
        ",
        "
        f.yaml:4:2: cannot be read as YAML: tabs disallowed within this context (block indentation)
          indent with spaces; YAML does not take tabs
        ",
    );
}

#[test]
fn versions_and_kinds_are_known_or_listed() {
    check(
        "
        apiVersion: karpenter.k8s.aws/v1alpha5
        kind: EC2NodeClass
        ---
        apiVersion: karpenter.sh/v2
        kind: NodePool
        ---
        apiVersion: karpenter.k8s.aws/v1
        kind: Ec2NodeClas
        ---
        apiVersion: karpenter.sh/v1beta1
        kind: NodeClaim
        ---
        kind: EC2NodeClass
        ---
        apiVersion: 1
        kind: EC2NodeClass
        ---
        just a sentence
        ",
        "
        f.yaml:1:1: apiVersion: `karpenter.k8s.aws/v1alpha5` is not a version of EC2NodeClass that is read here
          write karpenter.k8s.aws/v1 or nodemolt.dev/v1alpha1 or karpenter.k8s.aws/v1beta1
        f.yaml:4:1: apiVersion: `karpenter.sh/v2` is not a version of NodePool that is read here
          write karpenter.sh/v1 or karpenter.sh/v1beta1
        f.yaml:8:1: kind: `Ec2NodeClas` is not a kind of karpenter.k8s.aws
          did you mean `EC2NodeClass`?
        note: f.yaml:11:1: kind: ignored: `NodeClaim` is not read here
          read are EC2NodeClass, NodePool, NodeClaim, ImagePolicy, ImageQuarantine, NodeDisruptionBudget, Replacement, DisruptionLedger, AWSImage
        f.yaml:13:1: apiVersion: is missing
          for example `apiVersion: karpenter.k8s.aws/v1` and `kind: EC2NodeClass`
        f.yaml:15:1: apiVersion: must be a string
          for example `apiVersion: karpenter.k8s.aws/v1` and `kind: EC2NodeClass`
        f.yaml:18:1: expected an object with apiVersion and kind
        ",
    );
}

#[test]
fn json_is_read_as_well() {
    let (objects, problems) = read(&source(
        "{\n\t\"apiVersion\": \"karpenter.k8s.aws/v1\",\n\t\"kind\": \"EC2NodeClass\",\n\t\"metadata\": {\"name\": \
         \"a\\u00e9\\/\\ud83d\\ude00\"},\n\t\"spec\": {\"amiFamily\": \"AL2023\", \"amiFamly\": null,\n\t\t\"role\": 7}\n}\n",
    ));
    assert_eq!(
        shown(&problems),
        dedent(
            "
            f.yaml:5:34: spec.amiFamly: unknown field
              did you mean `amiFamily`?
            f.yaml:6:11: spec.role: expected a string, found the number `7`
              quote it: \"7\"
            "
        )
    );
    assert!(objects.is_empty());
}

#[test]
fn lists_are_read_item_by_item() {
    let objects = check(
        "
        apiVersion: v1
        kind: List
        items:
        - apiVersion: karpenter.k8s.aws/v1
          kind: EC2NodeClass
          metadata: {name: one}
          spec: {amiFamily: AL2}
        - apiVersion: v1
          kind: ConfigMap
        - apiVersion: karpenter.k8s.aws/v1
          kind: EC2NodeClass
          metadata: {name: two}
          spec: {amiFamily: AL2, amiSelectorTerms: [{owner: self}]}
        ---
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClassList
        items:
        - {apiVersion: nodemolt.dev/v1alpha1, kind: EC2NodeClass, metadata: {name: three}, spec: {amiFamily: AL2}}
        ",
        "
        note: f.yaml:9:3: items[1].kind: ignored: `ConfigMap` is not read here
          read are EC2NodeClass, NodePool, NodeClaim, ImagePolicy, ImageQuarantine, NodeDisruptionBudget, Replacement, DisruptionLedger, AWSImage
        f.yaml:13:45: items[2].spec.amiSelectorTerms[0]: expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']
          an owner alone would select all their images: add a name or tags
        ",
    );
    assert_eq!(objects.iter().map(|it| it.value.name()).collect::<Vec<_>>(), ["one", "three"]);
}

#[test]
fn items_of_a_typed_list_need_not_say_what_they_are() {
    let objects = check(
        "
        apiVersion: karpenter.sh/v1alpha1
        kind: NodeDisruptionBudgetList
        items:
        - metadata: {name: one}
          spec: {labelSelectors: [{}], maxUnavailable: 1}
        - {apiVersion: nodemolt.dev/v1alpha1, kind: EC2NodeClass, metadata: {name: two}, spec: {amiFamily: AL2}}
        - metadata: {name: three}
          spec: {labelSelectors: [{}], maxUnavailable: many}
        ",
        "
        f.yaml:8:32: items[2].spec.maxUnavailable: `many` is neither a number nor a percentage from 0% to 100%
          write a number such as 3, or a share such as 10%
        ",
    );
    let names: Vec<&str> = objects.iter().map(|it| it.value.name()).collect();
    assert_eq!(names, ["one", "two"]);
    // Of a plain list nobody knows what its items are.
    check(
        "
        apiVersion: v1
        kind: List
        items:
        - metadata: {name: one}
        ",
        "
        f.yaml:4:3: items[0].apiVersion: is missing
          for example `apiVersion: karpenter.k8s.aws/v1` and `kind: EC2NodeClass`
        f.yaml:4:3: items[0].kind: is missing
          for example `apiVersion: karpenter.k8s.aws/v1` and `kind: EC2NodeClass`
        ",
    );
}

#[test]
fn json_may_stand_behind_json() {
    let budget = |name: &str, most: &str| {
        format!(
            r#"{{"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeDisruptionBudget",
  "metadata": {{"name": "{name}"}}, "spec": {{"labelSelectors": [{{}}], "maxUnavailable": {most}}}}}"#
        )
    };
    let text = format!(
        "{}\n{}{} {{\"apiVersion\": \n---\n{}\n",
        budget("one", "1"),
        budget("two", "\"é\""),
        budget("three", "3"),
        budget("four", "4")
    );
    let (objects, problems) = read(&source(&text));
    let names: Vec<&str> = objects.iter().map(|it| it.value.name()).collect();
    assert_eq!(names, ["one", "three", "four"]);
    let told: Vec<(usize, usize, &str)> =
        problems.iter().map(|it| (it.line, it.column, it.field.as_str())).collect();
    // Places are those of the whole file; of what breaks off the parser says where it gave up.
    let line = text.lines().nth(3).unwrap();
    let column = line[..line.find("\"maxUnavailable").unwrap()].chars().count() + 1;
    assert_eq!(told[0], (4, column, "spec.maxUnavailable"), "{problems:?}");
    assert_eq!(told.len(), 2, "{problems:?}");
    assert_eq!(&text[problems[0].span.clone().unwrap()], "\"maxUnavailable\"");
}

#[test]
fn karpenters_rules_for_terms_hold_with_its_words() {
    let found = |terms: &str| {
        let text = format!(
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: a}}\nspec:\n  \
             amiFamily: Custom\n  amiSelectorTerms:\n{terms}"
        );
        let (_, problems) = read(&source(&text));
        problems.iter().map(|it| format!("{}: {}", it.field, it.message)).collect::<Vec<_>>()
    };
    let list = "spec.amiSelectorTerms";
    let exclusive = "is mutually exclusive, cannot be set with a combination of other";
    let formatted = "'alias' is improperly formatted, must match the format 'family@version'";
    let family = "family is not supported, must be one of the following: 'al2', 'al2023', \
                  'bottlerocket', 'windows2019', 'windows2022', 'windows2025'";
    let windows = "windows families may only specify version 'latest'";
    let empty_tags = "empty tag keys or values aren't supported";
    let absent = "is empty and counts as absent";
    for (terms, expected) in [
        ("  - {id: ami-0123, ssmParameter: /a}", vec![]),
        ("  - {ssmParameter: /a, name: b, tags: {c: '*'}}", vec![]),
        ("  - {alias: al2023@latest~3, requirements: [{key: a, operator: Exists}]}", vec![]),
        ("  - {alias: windows2022@latest~1}", vec![]),
        ("  - {alias: bottlerocket@v1.20.4}", vec![]),
        (
            "  - {id: ami-0123, name: b}",
            vec![format!("{list}[0].id: 'id' {exclusive} fields in amiSelectorTerms")],
        ),
        (
            "  - {id: ami-0123, owner: self}",
            vec![format!("{list}[0].id: 'id' {exclusive} fields in amiSelectorTerms")],
        ),
        (
            "  - {alias: al2@latest, name: b}",
            vec![format!("{list}[0].alias: 'alias' {exclusive} fields in amiSelectorTerms")],
        ),
        (
            "  - {alias: al2@latest, ssmParameter: /b}",
            vec![format!(
                "{list}[0].ssmParameter: is ignored beside 'alias': an alias already names its \
                 parameters"
            )],
        ),
        (
            "  - {name: b}\n  - {alias: al2@latest}",
            vec![format!("{list}[1].alias: 'alias' {exclusive} amiSelectorTerms")],
        ),
        ("  - {alias: al2023}", vec![format!("{list}[0].alias: {formatted}")]),
        ("  - {alias: 'al 2@latest'}", vec![format!("{list}[0].alias: {formatted}")]),
        ("  - {alias: 'al2@'}", vec![format!("{list}[0].alias: {formatted}")]),
        ("  - {alias: ubuntu@latest}", vec![format!("{list}[0].alias: {family}")]),
        ("  - {alias: windows2022@v1}", vec![format!("{list}[0].alias: {windows}")]),
        (
            "  - {alias: al2@latest~x}",
            vec![format!("{list}[0].alias: `latest~x` is not a version")],
        ),
        ("  - {tags: {a: ''}}", vec![format!("{list}[0].tags: {empty_tags}")]),
        ("  - {tags: {'': a}}", vec![format!("{list}[0].tags: {empty_tags}")]),
        ("  - {tags: {}}", vec![format!("{list}[0].tags: cannot be empty")]),
        ("  - {name: ''}", vec![format!("{list}[0].name: cannot be empty")]),
        ("  - {name: a, owner: slef}", vec![format!("{list}[0].owner: `slef` is not an owner")]),
        ("  - {name: a, owner: ''}", vec![format!("{list}[0].owner: {absent}")]),
        ("  - {name: a, tags: {}}", vec![format!("{list}[0].tags: {absent}")]),
        ("  - {owner: self, tags: {}}", vec![format!("{list}[0].tags: {absent}")]),
        ("  - {ssmParameter: /a, name: ''}", vec![format!("{list}[0].name: {absent}")]),
        (
            "  - {name: '', owner: ''}",
            vec![
                format!("{list}[0].name: cannot be empty"),
                format!("{list}[0].owner: cannot be empty"),
            ],
        ),
        ("  - {id: i-0123}", vec![format!("{list}[0].id: `i-0123` is not the id of an image")]),
        ("    []", vec![format!("{list}: cannot be empty")]),
        (
            "  - {name: a, requirements: [{key: a, operator: Inn, values: [b]}]}",
            vec![format!("{list}[0].requirements[0].operator: `Inn` is not an operator")],
        ),
        (
            &"  - {name: a}\n".repeat(31),
            vec![format!("{list}: has 31 terms, must have at most 30")],
        ),
    ] {
        assert_eq!(found(terms), expected, "{terms}");
    }
}

#[test]
fn a_family_and_an_alias_agree() {
    let found = |spec: &str| {
        let text = format!(
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: a}}\nspec: {spec}"
        );
        shown(&read(&source(&text)).1).lines().next().unwrap_or("").to_owned()
    };
    for (spec, expected) in [
        ("{amiFamily: AL2}", ""),
        ("{amiSelectorTerms: [{alias: al2@latest}]}", ""),
        ("{amiFamily: Custom, amiSelectorTerms: [{alias: al2@latest}]}", ""),
        (
            "{amiFamily: AL2023, amiSelectorTerms: [{alias: al2@latest}]}",
            "f.yaml:4:8: spec.amiFamily: if set, amiFamily must be 'AL2' or 'Custom' when using an AL2 alias",
        ),
        (
            "{amiFamily: AL2023, amiSelectorTerms: [{alias: windows2022@latest}]}",
            "f.yaml:4:8: spec.amiFamily: if set, amiFamily must be 'Windows2022' or 'Custom' when using a Windows2022 alias",
        ),
        (
            "{amiSelectorTerms: [{name: a}]}",
            "f.yaml:4:1: spec.amiFamily: must specify amiFamily if amiSelectorTerms does not contain an alias",
        ),
        (
            "{}",
            "f.yaml:4:1: spec.amiFamily: must specify amiFamily if amiSelectorTerms does not contain an alias",
        ),
        (
            "{amiFamily: Custom}",
            "f.yaml:4:8: spec.amiFamily: amiSelectorTerms is required when amiFamily == 'Custom'",
        ),
        ("{amiFamily: AL2032}", "f.yaml:4:8: spec.amiFamily: `AL2032` is not a family"),
        (
            "{amiFamily: Ubuntu}",
            "f.yaml:4:8: spec.amiFamily: the family `Ubuntu` was removed in v1",
        ),
    ] {
        assert_eq!(found(spec), expected, "{spec}");
    }
}

#[test]
fn the_seeds_examples_load_as_printed() {
    let minimum_age = class(
        "apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata:
  name: my-node-class
spec:
  amiFamily: AL2
  amiMinimumAge: 2w
",
    );
    assert_eq!(minimum_age.api_version, "karpenter.k8s.aws/v1");
    assert_eq!(minimum_age.spec.ami_minimum_age.as_deref(), Some("2w"));
    assert_eq!(minimum_age.spec.terms()[0].alias.as_deref(), Some("al2@latest"));

    let requirements = class(
        "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: default
spec:
  amiFamily: Custom
  amiSelectorTerms:
    # Standard AMI with no special requirements
    - name: my-ami
      owner: self

    # An ML-focused AMI that requires a GPU instance
    - ssmParameter: /my-org/amis/custom-ml-drivers
      requirements:
        - key: \"karpenter.k8s.aws/instance-gpu-count\"
          operator: \"Exists\"
status:
  amis:
    - id: ami-0bc680bafd3cdf722
      name: bottlerocket-aws-k8s-1.31-nvidia-x86_64-v1.42.0-5ed15786
      requirements:
        - key: kubernetes.io/arch
          operator: In
          values:
            - amd64
        - key: karpenter.k8s.aws/instance-gpu-count
          operator: Exists
",
    );
    assert_eq!(requirements.spec.terms()[1].requirements[0].operator, "Exists");
    let amis = requirements.status.unwrap().amis.unwrap();
    assert_eq!(amis[0].requirements.as_ref().unwrap()[0].values, ["amd64"]);
}

/// Seed 1 weighed a nested form and dropped it. Who tries it learns where things go.
#[test]
fn the_nested_form_of_a_term_is_refused() {
    check(
        "
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClass
        metadata: {name: a}
        spec:
          amiFamily: Custom
          amiSelectorTerms:
            - selector:
                ssmParameter: \"/my-org/amis/custom-ml-drivers\"
              requirements:
                - key: kubernetes.io/arch
                  operator: In
                  values: [ 'amd64' ]
        ",
        "
        f.yaml:7:7: spec.amiSelectorTerms[0].selector: unknown field
          the fields here are alias, tags, id, name, owner, ssmParameter, requirements
        ",
    );
}

#[test]
fn a_live_object_is_read() {
    let class = class(
        "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {\"apiVersion\":\"karpenter.k8s.aws/v1\"}
  creationTimestamp: \"2026-07-01T08:00:00Z\"
  finalizers: [karpenter.k8s.aws/termination]
  generation: 3
  managedFields:
  - apiVersion: karpenter.k8s.aws/v1
    fieldsType: FieldsV1
    fieldsV1:
      f:spec: {.: {}, f:amiFamily: {}}
    manager: kubectl-client-side-apply
    operation: Update
    time: \"2026-07-01T08:00:00Z\"
  name: default
  resourceVersion: \"4711\"
  uid: 0a0a0a0a-0000-4000-8000-000000000000
spec:
  amiFamily: AL2023
  amiSelectorTerms: [{alias: al2023@v20260610}]
  blockDeviceMappings:
  - deviceName: /dev/xvda
    ebs: {volumeSize: 100Gi, volumeType: gp3, encrypted: true, kmsKeyID: k, iops: 3000}
    rootVolume: true
  cpuOptions: {coreCount: 4, threadsPerCore: 1, amdSevSnp: enabled, nestedVirtualization: disabled}
  kubelet:
    maxPods: 42
    clusterDNS: [10.0.0.10]
    evictionHard: {memory.available: 5%}
    topologyManagerPolicy: single-numa-node
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
  associatePublicIPAddress: no
  role: nodes
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  subnetSelectorTerms: [{id: subnet-1}]
  userData: |
    #!/bin/bash
    echo hello
status:
  amis:
  - {id: ami-1, name: al2023, requirements: [], deprecated: true, surprise: 1}
  conditions: [{type: Ready, status: \"True\"}]
  somethingNew: {}
",
    );
    let kubelet = class.spec.kubelet.as_ref().unwrap();
    assert_eq!(kubelet.rest["topologyManagerPolicy"], "single-numa-node");
    assert_eq!(class.spec.associate_public_ip_address, Some(false));
    let status = class.status.as_ref().unwrap();
    assert_eq!(status.conditions.as_ref().unwrap()[0].status, "True");
    // What a controller wrote that is newer than we are is no one's mistake, and not ours to keep.
    assert!(status.amis.is_some());
    round_trip(&Object::Class(class));
}

#[track_caller]
fn round_trip(object: &Object) {
    let json = serde_json::to_string_pretty(object).unwrap();
    let yaml = serde_saphyr::to_string(object).unwrap();
    for text in [json, yaml] {
        let (objects, problems) = read(&source(&text));
        assert_eq!(shown(&problems), "", "{text}");
        assert_eq!(&objects[0].value, object, "{text}");
    }
}

#[test]
fn a_pool_is_read_whole() {
    let objects = check(
        "
        apiVersion: karpenter.sh/v1
        kind: NodePool
        metadata: {name: web}
        spec:
          replicas: 3
          weight: 10
          limits: {cpu: 1000, memory: 4Ti, nodes: 0.5}
          disruption:
            consolidateAfter: 1m
            consolidationPolicy: WhenEmpty
            budgets:
              - {nodes: 10%, reasons: [Drifted]}
              - {nodes: '0', schedule: '@daily', duration: 8h}
          template:
            metadata: {labels: {team: a}, annotations: {b: c}}
            spec:
              taints: [{key: a, value: b, effect: NoSchedule}]
              startupTaints: [{key: c, effect: NoExecute}]
              requirements:
                - {key: kubernetes.io/arch, operator: In, values: [arm64], minValues: 1}
              nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
              terminationGracePeriod: 48h
              expireAfter: 720h
        ---
        apiVersion: karpenter.sh/v1
        kind: NodePool
        metadata: {name: beta-in-v1}
        spec:
          disruption: {budgets: [{nodes: 10}], expireAfter: 1h}
          template: {spec: {nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: a, name: b}}}
        ",
        "
        f.yaml:29:34: spec.disruption.budgets[0].nodes: expected a string, found the number `10`
          quote it: \"10\"
        f.yaml:29:40: spec.disruption.expireAfter: unknown field
          the fields here are consolidateAfter, consolidationPolicy, budgets
        f.yaml:30:35: spec.template.spec.nodeClassRef: `group` is missing
        f.yaml:30:36: spec.template.spec.nodeClassRef.apiVersion: unknown field
          the fields here are group, kind, name
        ",
    );
    round_trip(&objects[0].value);
}

#[test]
fn a_v1beta1_pool_is_shown_as_v1() {
    let objects = check(
        "
        apiVersion: karpenter.sh/v1beta1
        kind: NodePool
        metadata: {name: web}
        spec:
          disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 240h}
          template:
            spec:
              kubelet: {maxPods: 20}
              requirements: [{key: a, operator: Exists}]
              nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: default}
        ",
        "
        warning: f.yaml:8:7: spec.template.spec.kubelet: kubelet settings belong to the class in v1; of the verbs here only `pack` heeds them
          move them to `spec.kubelet` of the EC2NodeClass
        ",
    );
    let Object::Pool(pool) = &objects[0].value else { panic!("{:?}", objects[0].value) };
    assert_eq!(pool.api_version, "karpenter.sh/v1");
    assert_eq!(pool.spec.template.spec.expire_after.as_deref(), Some("240h"));
    assert_eq!(pool.spec.template.spec.node_class_ref.group, "karpenter.k8s.aws");
    let disruption = pool.spec.disruption.as_ref().unwrap();
    assert_eq!(disruption.consolidation_policy.as_deref(), Some("WhenEmptyOrUnderutilized"));
    assert_eq!(
        pool.metadata.annotations["compatibility.karpenter.sh/v1beta1-kubelet-conversion"],
        r#"{"maxPods":20}"#
    );
    assert_eq!(objects[0].locate("spec.template.spec.expireAfter").line, 5);
    round_trip(&objects[0].value);
}

#[test]
fn a_pool_says_its_class_and_its_nodes_well() {
    check(
        "
        apiVersion: karpenter.sh/v1
        kind: NodePool
        metadata: {name: web}
        spec:
          template:
            spec:
              requirements:
                - {key: a, operator: In}
                - {key: b, operator: Gt, values: ['-1']}
                - {key: c, operator: Exists, values: [d]}
                - {key: d, operator: In, values: [e], minValues: 2}
              nodeClassRef: {group: karpenter.k8s.aws/v1, kind: EC2NodeClass, name: ''}
        ",
        "
        f.yaml:8:11: spec.template.spec.requirements[0].values: requirements with operator 'In' must have a value defined
        f.yaml:9:34: spec.template.spec.requirements[1].values: requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value
        warning: f.yaml:10:38: spec.template.spec.requirements[2].values: operator 'Exists' takes no values, these are ignored
          remove them, or write `In`
        f.yaml:11:47: spec.template.spec.requirements[3].minValues: requirements with 'minValues' must have at least that many values specified in the 'values' field
        f.yaml:12:22: spec.template.spec.nodeClassRef.group: a group has no version
          write `karpenter.k8s.aws`
        f.yaml:12:71: spec.template.spec.nodeClassRef.name: cannot be empty
        ",
    );
}

#[test]
fn a_chart_of_other_kinds_does_not_hide_ours() {
    let mut text = "apiVersion: v1\nkind: ConfigMap\n---\n".repeat(500);
    text.push_str("{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: a}, spec: {amiFamily: AL2}}");
    let (objects, problems) = read(&source(&text));
    assert_eq!(objects.len(), 1);
    assert!(problems.iter().all(|it| it.severity == Severity::Note));
    assert_eq!(problems.last().unwrap().message, "400 more objects are ignored");
}

#[test]
fn a_policy_is_read_and_checked() {
    let objects = check(
        "
        apiVersion: nodemolt.dev/v1alpha1
        kind: ImagePolicy
        metadata: {name: company}
        spec:
          classSelector:
            matchLabels: {tier: prod}
            matchExpressions: [{key: team, operator: In, values: [a, b]}]
          owners: [amazon, '123456789012']
          allowedImages: {ids: [ami-0123], names: ['al2023-*']}
          minimumAge: 7d
          ageFrom: CreationOrFirstSeen
          pinnedIds: HeldByAge
          deprecatedImages: Forbidden
          exceptions:
            - {image: ami-0456, reason: CVE-2026-1, until: 2026-08-01}
            - {image: 'al2023-*-v20260722', reason: CVE-2026-2, until: 2026-08-01T12:00:00+02:00}
          rollout: {concurrency: 3, cooldown: 10m, windows: {allow: [{days: [Sat], from: '22:00', to: '04:00'}]}}
        ---
        apiVersion: nodemolt.dev/v1alpha1
        kind: ImagePolicy
        metadata: {name: bad}
        spec:
          owners: [amazn, self]
          ageFrom: creation
          exceptions:
            - {image: ami-0456, until: 2026-08-01}
        ---
        apiVersion: nodemolt.dev/v1alpha1
        kind: ImagePolicy
        metadata: {name: worse}
        spec:
          owners: []
          allowedImages: {ids: ['al2023-*']}
          exceptions:
            - {image: ami-0456, reason: ' ', until: tomorrow}
        ",
        "
        f.yaml:24:12: spec.ageFrom: `creation` is not known here
          did you mean `Creation`?
        f.yaml:26:7: spec.exceptions[0]: `reason` is missing
        warning: f.yaml:32:3: spec.owners: an empty list allows nobody's images
          name the owners you trust, or remove it to leave owners to the classes
        f.yaml:33:25: spec.allowedImages.ids[0]: `al2023-*` is not the id of an image
          an id starts with `ami-`; patterns belong under `names`
        f.yaml:35:25: spec.exceptions[0].reason: cannot be empty
          say why this image may boot early: others will read it
        f.yaml:35:38: spec.exceptions[0].until: `tomorrow` is not a date or a time with its zone
          write it as `2026-08-01` or `2026-08-01T12:00:00Z`
        ",
    );
    let Object::Policy(policy) = &objects[0].value else { panic!("{:?}", objects[0].value) };
    assert_eq!(policy.spec.age_from, Some(AgeFrom::CreationOrFirstSeen));
    assert_eq!(policy.spec.pinned_ids, Some(PinnedIds::HeldByAge));
    assert_eq!(policy.spec.deprecated_images, Some(DeprecatedImages::Forbidden));
    round_trip(&objects[0].value);
}

#[test]
fn a_quarantine_names_one_thing_and_a_reason() {
    let objects = check(
        "
        apiVersion: nodemolt.dev/v1alpha1
        kind: ImageQuarantine
        metadata: {name: good}
        spec: {version: v20260722, reason: kernel panics, evidence: https://example.com/1, expiresAt: 2026-09-01}
        ---
        apiVersion: nodemolt.dev/v1alpha1
        kind: ImageQuarantine
        metadata: {name: two}
        spec: {id: ami-1, name: b, reason: ''}
        ---
        apiVersion: nodemolt.dev/v1alpha1
        kind: ImageQuarantine
        metadata: {name: none}
        spec: {version: 20260722, reason: r, evidence: [1]}
        ",
        "
        f.yaml:9:1: spec: expected exactly one of id, name and version, got id and name
          write one object for each
        f.yaml:9:28: spec.reason: cannot be empty
          say why the image may not boot: others will read it
        f.yaml:14:17: spec.version: expected a string, found the number `20260722`
          quote it: \"20260722\"
        f.yaml:14:49: spec.evidence[0]: expected a string, found the number `1`
          quote it: \"1\"
        ",
    );
    let Object::Quarantine(it) = &objects[0].value else { panic!("{:?}", objects[0].value) };
    assert_eq!(it.spec.evidence.as_deref().unwrap(), ["https://example.com/1"]);
    round_trip(&objects[0].value);
}

#[test]
fn aliases_and_merges_are_followed() {
    let objects = check(
        "
        apiVersion: karpenter.k8s.aws/v1
        kind: EC2NodeClass
        metadata: {name: &name a, labels: {name: *name}}
        spec:
          amiFamily: Custom
          amiSelectorTerms:
            - &base {name: a, owner: self}
            - {<<: *base, name: b}
            - {<<: [*base], ownr: c}
        ",
        "
        f.yaml:9:21: spec.amiSelectorTerms[2].ownr: unknown field
          did you mean `owner`?
        ",
    );
    assert!(objects.is_empty());
    let class = class(
        "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: a}, spec: {amiFamily: Custom,
          amiSelectorTerms: [&base {name: a, owner: self}, {<<: *base, name: b}]}}",
    );
    assert_eq!(class.spec.terms()[1].owner.as_deref(), Some("self"));
    assert_eq!(class.spec.terms()[1].name.as_deref(), Some("b"));
}

/// Hostile files, each with the beginning of what is said about it.
#[test]
fn bombs_are_refused_and_quickly() {
    let head = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\n";
    let mut laughs = "a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n".to_owned();
    for level in 1..12 {
        let alias = format!("*a{},", level - 1).repeat(9);
        writeln!(laughs, "a{level}: &a{level} [{alias}]").unwrap();
    }
    let mut merges = "a0: &a0 {".to_owned();
    for key in 0..2000 {
        write!(merges, "k{key}: 1, ").unwrap();
    }
    merges.push_str("}\n");
    for key in 0..2000 {
        writeln!(merges, "b{key}: {{<<: *a0}}").unwrap();
    }
    let mega = 1024 * 1024;
    for (name, text, expected) in [
        ("laughs", laughs, "its aliases repeat more than any file may hold"),
        ("merges", merges, "its aliases repeat more than any file may hold"),
        ("itself", "spec: &a [*a]\n".to_owned(), "names what it is in"),
        (
            "long text",
            format!("spec: {{a: &a {}, b: [{}]}}", "x".repeat(mega), "*a,".repeat(100)),
            "repeat",
        ),
        ("deep flow", format!("spec: {}", "[".repeat(mega)), "deep"),
        ("deep maps", format!("spec: {}", "{a: ".repeat(mega / 4)), "deep"),
        ("deep block", format!("spec:\n  {}", "- ".repeat(mega / 2)), "deep"),
        ("deep closed", format!("spec: {}{}", "[".repeat(100), "]".repeat(100)), "deep"),
        (
            "unknown",
            format!(
                "spec: {{{}}}",
                (0..40_000).fold(String::new(), |all, it| all + &format!("k{it}: 1,"))
            ),
            "unknown field",
        ),
        ("twice", format!("spec: {{{}}}", "k: 1,".repeat(40_000)), "is written twice"),
        (
            "wrong",
            format!("spec: {{amiSelectorTerms: [{}]}}", "1,".repeat(40_000)),
            "expected a map",
        ),
        ("questions", format!("spec:\n{}", "? ".repeat(mega / 2)), ""),
        ("anchors", format!("spec: {}", "&a ".repeat(mega / 3)), "YAML"),
        (
            "anchors many",
            format!(
                "spec: [{}]",
                (0..40_000).fold(String::new(), |all, it| all + &format!("&a{it} b,"))
            ),
            "",
        ),
        ("quote", format!("spec: \"{}", "x".repeat(mega)), "YAML"),
        ("comments", "#\n".repeat(mega), "missing"),
        ("documents", "---\n- a\n".repeat(mega / 8), "more than 100 problems"),
        ("broken documents", "---\n[\n".repeat(mega / 8), "YAML"),
        (
            "items",
            format!("apiVersion: v1\nkind: List\nitems: [{}]", "{a: 1},".repeat(40_000)),
            "missing",
        ),
        ("tags", format!("spec: {}", "!a ".repeat(mega / 3)), "YAML"),
        ("merge of nothing", "spec: {<<: 1}".to_owned(), "takes a map"),
        ("long key", format!("spec: {{{}: 1}}", "k".repeat(mega)), ""),
        ("long number", format!("spec: {}", "1".repeat(mega)), "expected a map"),
        ("too long", "#".repeat(4 * mega + 1), "MiB"),
        ("nan", "spec: {amiFamily: AL2, kubelet: {a: .nan}}".to_owned(), "finite"),
    ] {
        let text = if matches!(name, "items") { text } else { format!("{head}{text}") };
        let started = Instant::now();
        let (objects, problems) = read(&source(&text));
        assert!(objects.is_empty(), "{name}");
        let all = shown(&problems);
        assert!(!problems.is_empty() && all.contains(expected), "{name}: {all}");
        assert!(problems.len() <= 102 && all.len() < 100_000, "{name}: {} bytes", all.len());
        let took = started.elapsed();
        println!("{name}: {took:?}: {}", all.lines().next().unwrap_or_default());
        assert!(took.as_secs() < 10, "{name} took {took:?}");
    }
}

#[test]
fn a_large_spec_is_read() {
    let user_data = "    echo hello\n".repeat(1024 * 1024 / 15);
    let class = class(&format!(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: a}}\nspec:\n  amiFamily: AL2\n  \
         userData: |\n{user_data}"
    ));
    assert!(class.spec.user_data.unwrap().len() > 700_000);
}

#[test]
fn bytes_that_are_no_text_are_refused_at_their_place() {
    let problem = Source::from_bytes("f.yaml", b"a: b\nc: \xC3\xA4\xFF").unwrap_err();
    assert_eq!(problem.to_string(), "f.yaml:2:5: is not UTF-8 text");
    assert_eq!(Source::from_bytes("f", b"\xEF\xBB\xBFa").unwrap().text, "a");
}

/// Pieces that mean something to YAML or to us, so that chance finds the interesting places.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "apiVersion: karpenter.k8s.aws/v1\n",
        "kind: EC2NodeClass\n",
        "metadata: {name: a}\n",
        "spec:\n",
        "apiVersion: karpenter.sh/v1beta1\n",
        "kind: NodePool\n",
        "kind: List\n",
        "items:\n",
        "  amiSelectorTerms:\n",
        "  - ",
        "    - ",
        "name: ",
        "owner: ",
        "id: ",
        "alias: ",
        "tags: ",
        "kubelet: ",
        "status:\n",
        "template: ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        ": ",
        "\n",
        " ",
        "\t",
        "? ",
        "- ",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "!x ",
        "|",
        ">",
        "\"",
        "'",
        "#",
        "%YAML 1.2\n",
        "---\n",
        "...\n",
        "~",
        "null",
        "yes",
        "0x1F",
        "012",
        ".nan",
        "1e400",
        "-9223372036854775809",
        "ä",
        "\u{feff}",
        "\u{0}",
        "\u{2028}",
        "\\ud83d",
        "latest~",
        "al2023@",
        "ami-",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|it| it.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_break_the_door(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(source) = Source::from_bytes("f", &bytes) {
            read(&source);
        }
        read(&Source { name: "f".to_owned(), text: String::from_utf8_lossy(&bytes).into_owned() });
    }

    /// JSON behind JSON, with anything between and damage anywhere: each problem has its place in the text.
    #[test]
    fn no_stream_of_json_breaks_the_door(
        parts in prop::collection::vec(prop::sample::select(&[
            r#"{"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": "é"}, "spec": {}}"#,
            r#"{"apiVersion": "nodemolt.dev/v1alpha1", "kind": "EC2NodeClassList", "items": [{"metadata": 1}, {}, 2]}"#,
            r#"{"kind": "List", "items": [{"kind": "NodePoolList", "apiVersion": "karpenter.sh/v1", "items": [{"spec": 1}]}]}"#,
            "{}", "[]", "5", "\"ü\"", "{", "}", "\n", " ", "é", "\n---\n", ",", "# x\n", "\t", "\r\n", "null", "a: b\n",
        ][..]), 0..12)
    ) {
        let text = format!("{{}}{}", parts.concat());
        for it in read(&source(&text)).1 {
            prop_assert!(it.line >= 1 && it.line <= text.lines().count() + 1 && it.column >= 1);
            if let Some(span) = it.span {
                prop_assert!(text.get(span.clone()).is_some(), "{span:?} is no part of the text");
            }
        }
    }

    #[test]
    fn no_yaml_breaks_the_door(text in pieces()) {
        let (_, problems) = read(&source(&text));
        for it in problems {
            prop_assert!(it.line >= 1 && it.column >= 1);
            if let Some(span) = it.span {
                prop_assert!(text.get(span.clone()).is_some(), "{span:?} is no part of the text");
            }
        }
    }
}
