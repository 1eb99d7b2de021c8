//! Property tests of files, variables and tiers.

use super::{
    McpConfigError, McpServerConfig, McpTier, McpTierServers, McpTransport, merge_tiers, parse_file, print_file,
    substitute,
};
use proptest::{collection, prelude::*, strategy::LazyJust};
use std::{collections::BTreeMap, time::Duration};

fn texts() -> impl Strategy<Value = BTreeMap<String, String>> {
    collection::btree_map("[A-Za-z][A-Za-z_-]{0,8}", "[ -~äß€]{0,20}", 0..4)
}

fn transport() -> impl Strategy<Value = McpTransport> {
    let url = "https?://[a-z]{1,8}(:[0-9]{1,4})?/[!-\\[\\]-~]{0,20}";
    prop_oneof![
        ("[!-~]{1,20}", collection::vec("[ -~\n\"ä]{0,20}", 0..4), texts())
            .prop_map(|(command, args, env)| McpTransport::Stdio { command, args, env }),
        (url, texts()).prop_map(|(url, headers)| McpTransport::Http { url, headers }),
        (url, texts()).prop_map(|(url, headers)| McpTransport::Sse { url, headers }),
    ]
}

fn config() -> impl Strategy<Value = McpServerConfig> {
    let timeout = || proptest::option::of((1..100_000_u64).prop_map(Duration::from_millis));
    (transport(), any::<bool>(), timeout(), timeout(), proptest::option::of("[a-z/]{1,9}")).prop_map(
        |(transport, disabled, startup_timeout, call_timeout, folder)| McpServerConfig {
            transport,
            disabled,
            startup_timeout,
            call_timeout,
            folder: folder.map(Into::into),
        },
    )
}

fn tiers() -> impl Strategy<Value = Vec<McpTierServers>> {
    let tier = prop_oneof![
        LazyJust::new(|| McpTier::Project),
        LazyJust::new(|| McpTier::Agent),
        "[ab]".prop_map(McpTier::Skill),
    ];
    // Few names, so that they collide.
    let servers = collection::btree_map("[abc]", config().prop_map(Ok::<_, McpConfigError>), 0..4);
    collection::vec((tier, servers).prop_map(|(tier, servers)| McpTierServers { tier, servers }), 0..6)
}

fn rank(tier: &McpTier) -> u8 {
    match tier {
        McpTier::Project => 0,
        McpTier::Agent => 1,
        McpTier::Skill(_) => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_printed_file_parses_to_the_same_servers(servers in collection::btree_map("[a-zA-Z0-9_-]{1,64}", config(), 0..6)) {
        let text = print_file(servers.iter().map(|(name, config)| (name.as_str(), config)));
        let read: BTreeMap<_, _> = parse_file(&text).unwrap().into_iter().map(|(name, read)| (name, read.unwrap())).collect();
        prop_assert_eq!(read, servers);
    }

    #[test]
    fn the_parser_never_panics(text in "\\PC{0,200}", inside in "[ -~]{0,60}") {
        drop(parse_file(&text));
        drop(parse_file(&format!("{{\"mcpServers\": {{\"a\": {inside}}}}}")));
    }

    #[test]
    fn text_without_references_does_not_change(text in "[^$]{0,100}") {
        prop_assert_eq!(substitute(&text, &|_| None), Ok(text));
    }

    #[test]
    fn values_are_not_expanded_again(before in "[^${}]{0,20}", value in "[ -~]{0,40}", after in "[^${}]{0,20}") {
        let text = format!("{before}${{V}}{after}");
        let lookup = |name: &str| (name == "V").then(|| value.clone());
        prop_assert_eq!(substitute(&text, &lookup), Ok(format!("{before}{value}{after}")));
    }

    #[test]
    fn an_error_names_a_variable_from_the_text(text in "[${}:A-C_a-]{0,40}") {
        if let Err(name) = substitute(&text, &|_| None) {
            let reference = format!("${{{name}}}");
            prop_assert!(text.contains(&reference));
        }
        prop_assert!(substitute(&text, &|_| Some("x".into())).is_ok());
    }

    #[test]
    fn each_name_appears_once_from_the_strongest_tier(tiers in tiers()) {
        let merged = merge_tiers(tiers.clone());
        let all: Vec<_> = merged.in_use.iter().chain(&merged.disabled).collect();
        let mut named: BTreeMap<&String, Vec<&McpTierServers>> = BTreeMap::new();
        for source in &tiers {
            for name in source.servers.keys() {
                named.entry(name).or_default().push(source);
            }
        }
        prop_assert_eq!(all.len(), named.len());
        for server in all {
            let by = &named[&server.name];
            let strongest = by.iter().map(|source| rank(&source.tier)).max().unwrap();
            let first = by.iter().find(|source| rank(&source.tier) == strongest).unwrap();
            prop_assert_eq!(&server.config, &first.servers[&server.name]);
            prop_assert_eq!(&server.tier, &first.tier);
            prop_assert_eq!(server.shadowed.len(), by.len() - 1);
            prop_assert!(server.shadowed.iter().all(|tier| rank(tier) <= strongest));
            let off = server.config.as_ref().unwrap().disabled;
            prop_assert_eq!(off, merged.disabled.contains(server));
        }
        prop_assert!(merged.in_use.is_sorted_by(|one, other| one.name < other.name));
    }
}
