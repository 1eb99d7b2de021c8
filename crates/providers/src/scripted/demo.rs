//! Plain sentences for directives: what a newcomer asks the demo agent for. The web app suggests these sentences.

/// A directive, and the sentences that stand for it in the languages of the web app.
struct PlainRequest {
    sentences: [&'static str; 2],
    directive: &'static str,
}

const REQUESTS: [PlainRequest; 6] = [
    PlainRequest { sentences: ["count to 60", "zähle bis 60"], directive: "!count 60 100" },
    PlainRequest {
        sentences: ["think about why the sky is blue", "denke darüber nach, warum der himmel blau ist"],
        directive: "!think Short waves are scattered more than long ones, so blue light reaches us from every side.",
    },
    PlainRequest {
        sentences: ["look at the clock", "sieh auf die uhr"],
        directive: "!tool look {\"at\":\"the clock\"}",
    },
    PlainRequest {
        sentences: ["list the files in this folder", "liste die dateien in diesem ordner auf"],
        directive: "!ask Bash {\"command\":\"ls -l\"}",
    },
    PlainRequest {
        sentences: ["ask me which color i like", "frage mich, welche farbe ich mag"],
        directive: "!script [{\"approval\":{\"name\":\"AskUserQuestion\",\"input\":{\"questions\":[{\"question\":\
                    \"Which color do you like?\",\"header\":\"Color\",\"options\":[{\"label\":\"Green\"},\
                    {\"label\":\"Blue\"}]}]},\"is_question\":true}},{\"text\":\"Thank you.\"}]",
    },
    PlainRequest { sentences: ["work until i stop you", "arbeite, bis ich dich stoppe"], directive: "!hang" },
];

/// Returns the directive that a message asks for in plain words, whatever its case and closing punctuation.
pub fn directive_of(text: &str) -> Option<&'static str> {
    let said = text.trim().trim_end_matches(['.', '!', '?']).to_lowercase();
    let request = REQUESTS.iter().find(|request| request.sentences.contains(&said.as_str()))?;
    Some(request.directive)
}
