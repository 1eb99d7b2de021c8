//! Merges the MCP servers of the three tiers ([`merge_tiers`]): of several with the same name, that of a skill wins over the
//! agent's, and the agent's over the project's.

use super::{McpConfigError, McpServerConfig, NamedMcpServer};
use std::{collections::BTreeMap, fmt};

/// Where a server is configured. The higher tier wins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum McpTier {
    /// The `.mcp.json` in the folder of the room.
    Project,
    Agent,
    /// The skill's name.
    Skill(String),
}

impl McpTier {
    const fn rank(&self) -> u8 {
        match self {
            Self::Project => 0,
            Self::Agent => 1,
            Self::Skill(_) => 2,
        }
    }
}

impl fmt::Display for McpTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => f.write_str("project"),
            Self::Agent => f.write_str("agent"),
            Self::Skill(name) => write!(f, "skill {name}"),
        }
    }
}

/// All servers of one tier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpTierServers {
    pub tier: McpTier,
    pub servers: BTreeMap<String, Result<McpServerConfig, McpConfigError>>,
}

/// A server with its tier and the tiers whose server of the same name it shadows, strongest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergedMcpServer {
    pub name: String,
    pub tier: McpTier,
    /// An invalid server still shadows weaker ones: running a server that was not meant would be worse.
    pub config: Result<McpServerConfig, McpConfigError>,
    pub shadowed: Vec<McpTier>,
}

impl MergedMcpServer {
    /// Returns the server if its configuration is valid.
    pub fn server(&self) -> Option<NamedMcpServer> {
        let config = self.config.as_ref().ok()?.clone();
        Some(NamedMcpServer { name: self.name.clone(), config, owner: None })
    }
}

/// Both lists are sorted by name, so that prompts built from them are stable.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MergedMcpServers {
    pub in_use: Vec<MergedMcpServer>,
    /// Disabled by the strongest tier that defines them; a weaker tier does not enable them again.
    pub disabled: Vec<MergedMcpServer>,
}

/// Merges all tiers. Within one tier (two skills) the earlier entry wins.
pub fn merge_tiers(tiers: impl IntoIterator<Item = McpTierServers>) -> MergedMcpServers {
    let mut tiers: Vec<McpTierServers> = tiers.into_iter().collect();
    tiers.sort_by_key(|servers| std::cmp::Reverse(servers.tier.rank()));
    let mut servers: BTreeMap<String, MergedMcpServer> = BTreeMap::new();
    for McpTierServers { tier, servers: named } in tiers {
        for (name, config) in named {
            match servers.get_mut(&name) {
                Some(stronger) => stronger.shadowed.push(tier.clone()),
                None => {
                    let tier = tier.clone();
                    servers.insert(name.clone(), MergedMcpServer { name, tier, config, shadowed: Vec::new() });
                }
            }
        }
    }
    let is_off = |server: &MergedMcpServer| server.config.as_ref().is_ok_and(|config| config.disabled);
    let (disabled, in_use) = servers.into_values().partition(is_off);
    MergedMcpServers { in_use, disabled }
}

#[cfg(test)]
mod tests {
    use super::{McpTier, McpTierServers, merge_tiers};
    use crate::mcp::{McpConfigError, McpEntryError, McpServerConfig, McpTransport};

    fn config(command: &str, disabled: bool) -> Result<McpServerConfig, McpConfigError> {
        let transport = McpTransport::Stdio { command: command.into(), args: Vec::new(), env: [].into() };
        Ok(McpServerConfig { disabled, ..McpServerConfig::new(transport) })
    }

    fn servers_of<const N: usize>(
        tier: McpTier,
        servers: [(&str, Result<McpServerConfig, McpConfigError>); N],
    ) -> McpTierServers {
        McpTierServers { tier, servers: servers.map(|(name, config)| (name.to_owned(), config)).into() }
    }

    #[test]
    fn the_stronger_tier_wins_and_lists_what_it_shadows() {
        let (first, second) = (McpTier::Skill("first".into()), McpTier::Skill("second".into()));
        let merged = merge_tiers([
            servers_of(McpTier::Project, [("git", config("p", false)), ("time", config("p", false))]),
            servers_of(first.clone(), [("git", config("s1", false))]),
            servers_of(McpTier::Agent, [("git", config("a", false)), ("web", config("a", false))]),
            servers_of(second.clone(), [("git", config("s2", false))]),
        ]);
        let names: Vec<&str> = merged.in_use.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["git", "time", "web"]);
        let git = &merged.in_use[0];
        assert_eq!((&git.tier, &git.config), (&first, &config("s1", false)));
        assert_eq!(git.shadowed, [second, McpTier::Agent, McpTier::Project]);
        assert_eq!(merged.in_use[1].tier, McpTier::Project);
    }

    #[test]
    fn a_disabled_server_stays_disabled_and_shadows_weaker_tiers() {
        let merged = merge_tiers([
            servers_of(McpTier::Agent, [("git", config("a", true)), ("time", config("a", false))]),
            servers_of(McpTier::Project, [("git", config("p", false)), ("time", config("p", true))]),
        ]);
        assert_eq!(merged.in_use.len(), 1);
        assert_eq!(merged.in_use[0].name, "time");
        assert_eq!(merged.disabled[0].shadowed, [McpTier::Project]);
    }

    #[test]
    fn an_invalid_server_is_not_replaced_by_a_weaker_tier() {
        let wrong = Err(McpEntryError::CommandOrUrl.into());
        let merged = merge_tiers([
            servers_of(McpTier::Agent, [("git", wrong.clone())]),
            servers_of(McpTier::Project, [("git", config("p", false))]),
        ]);
        assert_eq!((&merged.in_use[0].config, merged.in_use[0].server()), (&wrong, None));
    }
}
