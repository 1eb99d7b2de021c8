//! Who has the say where several name a server: skill over agent over project.

use super::{ConfigError, Server, ServerConfig};
use std::{collections::BTreeMap, fmt};

/// Where a server was written down. The greater one wins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tier {
    /// The `.mcp.json` in the folder that the agent works in.
    Project,
    Agent,
    /// Of this name.
    Skill(String),
}

impl Tier {
    const fn rank(&self) -> u8 {
        match self {
            Self::Project => 0,
            Self::Agent => 1,
            Self::Skill(_) => 2,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => f.write_str("project"),
            Self::Agent => f.write_str("agent"),
            Self::Skill(name) => write!(f, "skill {name}"),
        }
    }
}

/// All that one place names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layer {
    pub tier: Tier,
    pub servers: BTreeMap<String, Result<ServerConfig, ConfigError>>,
}

/// A server with the tier that set it and those whose server of the same name it hides, the strongest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effective {
    pub name: String,
    pub tier: Tier,
    /// One that is wrong still hides the weaker ones: to run another server than was meant would be worse.
    pub config: Result<ServerConfig, ConfigError>,
    pub shadowed: Vec<Tier>,
}

impl Effective {
    /// What can be started or reached.
    pub fn server(&self) -> Option<Server> {
        let config = self.config.as_ref().ok()?.clone();
        Some(Server { name: self.name.clone(), config })
    }
}

/// Each ordered by name, so that a prompt made of them stays the same.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Merged {
    pub in_use: Vec<Effective>,
    /// Left out because the tier that has the say switched them off; a weaker tier does not bring them back.
    pub disabled: Vec<Effective>,
}

/// Of two layers of the same tier (two skills) the earlier one has the say.
pub fn merge(layers: impl IntoIterator<Item = Layer>) -> Merged {
    let mut layers: Vec<Layer> = layers.into_iter().collect();
    layers.sort_by_key(|layer| std::cmp::Reverse(layer.tier.rank()));
    let mut servers: BTreeMap<String, Effective> = BTreeMap::new();
    for Layer { tier, servers: named } in layers {
        for (name, config) in named {
            match servers.get_mut(&name) {
                Some(stronger) => stronger.shadowed.push(tier.clone()),
                None => {
                    let tier = tier.clone();
                    servers.insert(name.clone(), Effective { name, tier, config, shadowed: Vec::new() });
                }
            }
        }
    }
    let is_off = |server: &Effective| server.config.as_ref().is_ok_and(|config| config.disabled);
    let (disabled, in_use) = servers.into_values().partition(is_off);
    Merged { in_use, disabled }
}

#[cfg(test)]
mod tests {
    use super::{Layer, Tier, merge};
    use crate::mcp::{ConfigError, EntryError, ServerConfig, Transport};

    fn config(command: &str, disabled: bool) -> Result<ServerConfig, ConfigError> {
        let transport = Transport::Stdio { command: command.into(), args: Vec::new(), env: [].into() };
        Ok(ServerConfig { disabled, ..ServerConfig::new(transport) })
    }

    fn layer<const N: usize>(tier: Tier, servers: [(&str, Result<ServerConfig, ConfigError>); N]) -> Layer {
        Layer { tier, servers: servers.map(|(name, config)| (name.to_owned(), config)).into() }
    }

    #[test]
    fn the_stronger_tier_has_its_way_and_says_over_whom() {
        let (first, second) = (Tier::Skill("first".into()), Tier::Skill("second".into()));
        let merged = merge([
            layer(Tier::Project, [("git", config("p", false)), ("time", config("p", false))]),
            layer(first.clone(), [("git", config("s1", false))]),
            layer(Tier::Agent, [("git", config("a", false)), ("web", config("a", false))]),
            layer(second.clone(), [("git", config("s2", false))]),
        ]);
        let names: Vec<&str> = merged.in_use.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["git", "time", "web"]);
        let git = &merged.in_use[0];
        assert_eq!((&git.tier, &git.config), (&first, &config("s1", false)));
        assert_eq!(git.shadowed, [second, Tier::Agent, Tier::Project]);
        assert_eq!(merged.in_use[1].tier, Tier::Project);
    }

    #[test]
    fn one_that_is_switched_off_is_left_out_with_what_it_hides() {
        let merged = merge([
            layer(Tier::Agent, [("git", config("a", true)), ("time", config("a", false))]),
            layer(Tier::Project, [("git", config("p", false)), ("time", config("p", true))]),
        ]);
        assert_eq!(merged.in_use.len(), 1);
        assert_eq!(merged.in_use[0].name, "time");
        assert_eq!(merged.disabled[0].shadowed, [Tier::Project]);
    }

    #[test]
    fn one_that_is_wrong_is_not_replaced_by_another() {
        let wrong = Err(EntryError::CommandOrUrl.into());
        let merged =
            merge([layer(Tier::Agent, [("git", wrong.clone())]), layer(Tier::Project, [("git", config("p", false))])]);
        assert_eq!((&merged.in_use[0].config, merged.in_use[0].server()), (&wrong, None));
    }
}
