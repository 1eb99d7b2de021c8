//! Reads the little of a Cargo.toml that the rules ask for: the package's name and what it depends
//! on.

pub struct Manifest<'a> {
    pub name: &'a str,
    pub dependencies: Vec<Dependency<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Dependency<'a> {
    pub name: &'a str,
    pub line: usize,
    pub for_tests_only: bool,
}

pub fn parse(text: &str) -> Manifest<'_> {
    let mut manifest = Manifest { name: "", dependencies: Vec::new() };
    let mut section = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = header;
            // `[dependencies.name]` is a section of its own.
            if let Some((table, name)) = header.rsplit_once('.').filter(|(table, _)| is_dependency_table(table)) {
                manifest.dependencies.push(dependency(name, index, table));
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
            let key = key.trim().split('.').next().unwrap_or(key);
            manifest.dependencies.push(dependency(real_name(value).unwrap_or(key), index, section));
        }
    }
    manifest
}

fn dependency<'a>(name: &'a str, index: usize, table: &str) -> Dependency<'a> {
    Dependency {
        name: name.trim().trim_matches('"'),
        line: index + 1,
        for_tests_only: table.ends_with("dev-dependencies"),
    }
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
    fn reads_every_way_to_name_a_dependency() {
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
    }
}
