//! Reads the parts of a Cargo.toml that the rules need: the package's name and its dependencies.

pub struct CrateManifest<'a> {
    pub name: &'a str,
    pub dependencies: Vec<CrateDependency<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct CrateDependency<'a> {
    pub name: &'a str,
    pub line: usize,
    pub for_tests_only: bool,
    /// The version is in the workspace's manifest.
    pub is_from_workspace: bool,
}

pub fn parse(text: &str) -> CrateManifest<'_> {
    let mut manifest = CrateManifest { name: "", dependencies: Vec::new() };
    let mut section = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = header;
            // `[dependencies.name]` is a section of its own.
            if let Some((table, name)) = header.rsplit_once('.').filter(|(table, _)| is_dependency_table(table)) {
                manifest.dependencies.push(dependency(name, index, table, false));
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        if section == "package" && key.trim() == "name" {
            manifest.name = value.trim().trim_matches('"');
        }
        if is_dependency_table(section) {
            let is_from_workspace = key.trim().ends_with(".workspace") || says_workspace(value);
            let key = key.trim().split('.').next().unwrap_or(key);
            manifest.dependencies.push(dependency(real_name(value).unwrap_or(key), index, section, is_from_workspace));
        } else if key.trim() == "workspace"
            && section.rsplit_once('.').is_some_and(|(table, _)| is_dependency_table(table))
            && let Some(dependency) = manifest.dependencies.last_mut()
        {
            dependency.is_from_workspace = value.trim() == "true";
        }
    }
    manifest
}

fn dependency<'a>(name: &'a str, index: usize, table: &str, is_from_workspace: bool) -> CrateDependency<'a> {
    CrateDependency {
        name: name.trim().trim_matches('"'),
        line: index + 1,
        for_tests_only: table.ends_with("dev-dependencies"),
        is_from_workspace,
    }
}

/// `{ workspace = true, features = […] }`
fn says_workspace(value: &str) -> bool {
    let mut parts = value.split(['{', ',', '}']).filter_map(|part| part.split_once('='));
    parts.any(|(key, value)| key.trim() == "workspace" && value.trim() == "true")
}

/// Also `target.'cfg(unix)'.dependencies` and the like.
fn is_dependency_table(section: &str) -> bool {
    let table = section.rsplit('.').next().unwrap_or(section);
    let for_one_target = !section.contains('.') || section.starts_with("target.");
    for_one_target && matches!(table, "dependencies" | "dev-dependencies" | "build-dependencies")
}

/// The name behind an alias: `database = { package = "sqlx" }`.
fn real_name(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("package")?;
    rest.trim_start().strip_prefix('=')?.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_dependency_is_read() {
        let manifest = parse(
            "[package]\nname = \"store\"\nversion.workspace = true\n\n[dependencies]\n# sqlx = \"1\"\ndomain.workspace = true\n\
             bytes = \"1\"\ndatabase = { version = \"1\", package = \"sqlx\" }\n\n[dependencies.axum]\nversion = \"1\"\n\n\
             [target.'cfg(unix)'.dependencies]\nhyper = \"1\"\n\n[dev-dependencies]\ntestkit.workspace = true\n\n[features]\n\
             planted = []\n",
        );
        assert_eq!(manifest.name, "store");
        let names: Vec<&str> = manifest.dependencies.iter().map(|dependency| dependency.name).collect();
        assert_eq!(names, ["domain", "bytes", "sqlx", "axum", "hyper", "testkit"]);
        let for_tests: Vec<bool> = manifest.dependencies.iter().map(|dependency| dependency.for_tests_only).collect();
        assert_eq!(for_tests, [false, false, false, false, false, true]);
        assert_eq!(manifest.dependencies[0].line, 7);
        let shared: Vec<bool> = manifest.dependencies.iter().map(|dependency| dependency.is_from_workspace).collect();
        assert_eq!(shared, [true, false, false, false, false, true]);
    }
}
