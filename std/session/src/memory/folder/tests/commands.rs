//! A table of commands and their answers.

use serde_json::{Value, json};

use super::{changes, folder, say};

/// A table of commands, each on the files that the commands before it have left.
#[test]
fn each_command_answers_as_documented() {
    let folder = folder();
    let table: &[(Value, Result<&str, &str>)] = &[
        (
            json!({"command": "view", "path": "/memories"}),
            Ok(
                "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and \
                node_modules:\n0B\t/memories",
            ),
        ),
        (
            json!({"command": "create", "path": "/memories/tea.md", "file_text": "green\nblack\n"}),
            Ok("File created successfully at: /memories/tea.md"),
        ),
        (
            json!({"command": "create", "path": "/memories/tea.md", "file_text": "white"}),
            Err("Error: File /memories/tea.md already exists"),
        ),
        (
            json!({"command": "view", "path": "/memories/tea.md"}),
            Ok("Here's the content of /memories/tea.md with line numbers:\n     1\tgreen\n     2\tblack"),
        ),
        (
            json!({"command": "view", "path": "/memories/tea.md", "view_range": [2, -1]}),
            Ok("Here's the content of /memories/tea.md with line numbers:\n     2\tblack"),
        ),
        (
            json!({"command": "view", "path": "/memories/tea.md", "view_range": [3, 4]}),
            Err(
                "Error: Invalid `view_range` parameter: [3, 4]. It should be within the range of lines of the \
                 file: [1, 2], and -1 may stand for the last line.",
            ),
        ),
        (
            json!({"command": "view", "path": "/memories/coffee.md"}),
            Err("The path /memories/coffee.md does not exist. Please provide a valid path."),
        ),
        (
            json!({"command": "str_replace", "path": "/memories/tea.md", "old_str": "green", "new_str": "red"}),
            Ok("The memory file has been edited.\n     1\tred\n     2\tblack"),
        ),
        (
            json!({"command": "str_replace", "path": "/memories/tea.md", "old_str": "green", "new_str": "red"}),
            Err("No replacement was performed, old_str `green` did not appear verbatim in /memories/tea.md."),
        ),
        (
            json!({"command": "str_replace", "path": "/memories/no.md", "old_str": "a", "new_str": "b"}),
            Err("Error: The path /memories/no.md does not exist. Please provide a valid path."),
        ),
        (
            json!({"command": "insert", "path": "/memories/tea.md", "insert_line": 1, "insert_text": "black too"}),
            Ok("The file /memories/tea.md has been edited."),
        ),
        (
            json!({"command": "str_replace", "path": "/memories/tea.md", "old_str": "black", "new_str": "b"}),
            Err(
                "No replacement was performed. Multiple occurrences of old_str `black` in lines: 2, 3. Please \
                 ensure it is unique",
            ),
        ),
        (
            json!({"command": "insert", "path": "/memories/tea.md", "insert_line": 4, "insert_text": "x"}),
            Err("Error: Invalid `insert_line` parameter: 4. It should be within the range of lines of the \
                 file: [0, 3]"),
        ),
        (
            json!({"command": "insert", "path": "/memories/no.md", "insert_line": 0, "insert_text": "x"}),
            Err("Error: The path /memories/no.md does not exist"),
        ),
        (
            json!({"command": "rename", "old_path": "/memories/tea.md", "new_path": "/memories/drinks/tea.md"}),
            Ok("Successfully renamed /memories/tea.md to /memories/drinks/tea.md"),
        ),
        (
            json!({"command": "rename", "old_path": "/memories/tea.md", "new_path": "/memories/t.md"}),
            Err("Error: The path /memories/tea.md does not exist"),
        ),
        (
            json!({"command": "rename", "old_path": "/memories/drinks/tea.md", "new_path": "/memories/drinks"}),
            Err("Error: The destination /memories/drinks already exists"),
        ),
        (
            json!({"command": "rename", "old_path": "/memories/drinks", "new_path": "/memories/drinks/hot"}),
            Err("Error: /memories/drinks cannot be moved into itself"),
        ),
        (
            json!({"command": "create", "path": "/memories/drinks", "file_text": ""}),
            Err("Error: /memories/drinks is a directory. Choose the path of a file."),
        ),
        (
            json!({"command": "create", "path": "/memories/drinks/tea.md/cold", "file_text": ""}),
            Err("Error: /memories/drinks/tea.md is a file, not a directory. Choose another path."),
        ),
        (
            json!({"command": "delete", "path": "/memories/drinks"}),
            Ok("Successfully deleted /memories/drinks"),
        ),
        (
            json!({"command": "delete", "path": "/memories/drinks"}),
            Err("Error: The path /memories/drinks does not exist"),
        ),
        (
            json!({"command": "delete", "path": "/memories"}),
            Err("Error: /memories itself cannot be deleted. Delete the files in it."),
        ),
        (
            json!({"command": "open", "path": "/memories"}),
            Err(
                "Error: The arguments are no command: unknown variant `open`, expected one of `view`, `create`, \
                 `str_replace`, `insert`, `delete`, `rename` at line 1 column 17",
            ),
        ),
    ];
    for (command, expected) in table {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(say(&folder, command), expected, "{command}");
    }
    assert_eq!(changes(&folder), 5, "a refused command changes nothing");
}
