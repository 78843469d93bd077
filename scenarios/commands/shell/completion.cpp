#include "scenarios/commands/shell/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/language/keys.h"

namespace slipway::scenarios {
namespace {

// The options whose value is KEY=VALUE or KEY=A,B.
bool takes_key(const OptionForm& option) { return option.placeholder.starts_with("KEY="); }

// Inside '...' of all three shells.
std::string quotable(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return text;
}

// The first line or half-sentence of a meaning, without what zsh takes for the parts of a specification.
std::string short_meaning(std::string text) {
  text.resize(std::min(text.size(), text.find_first_of("\n;")));
  std::erase_if(text, [](char letter) { return std::string_view("\\[]:").find(letter) != std::string_view::npos; });
  return quotable(text);
}

// "--set --trace -o" of those options that `wanted` takes.
template <typename Wanted>
std::string dashed(const CommandForm& form, Wanted wanted) {
  std::vector<std::string> names;
  for (const OptionForm& option : form.options) {
    if (!wanted(option)) continue;
    names.push_back("--" + option.name);
    if (!option.letter.empty()) names.push_back("-" + option.letter);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string bash_script(const std::vector<CommandForm>& forms, const std::vector<std::string>& keys) {
  std::string names, cases;
  for (const CommandForm& form : forms) {
    names += form.name + " ";
    cases += fmt::format("    {}) options='{}' keyed='{}' valued='{}' words='{}' ;;\n", form.name,
                         dashed(form, [](const OptionForm&) { return true; }), dashed(form, takes_key),
                         dashed(form, [](const OptionForm& o) { return !o.placeholder.empty() && !takes_key(o); }),
                         fmt::join(form.words, " "));
  }
  return fmt::format(R"(# bash completion of slipway; made by `slipway completion bash`
_slipway() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options keyed valued words
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{0}help --help --version' -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
    help) [ "$COMP_CWORD" -eq 2 ] && COMPREPLY=($(compgen -W '{0}' -- "$word")); return ;;
{1}    *) return ;;
  esac
  case " $keyed " in *" $before "*)
    COMPREPLY=($(compgen -S = -W '{2}' -- "$word"))
    compopt -o nospace 2>/dev/null
    return ;;
  esac
  case " $valued " in *" $before "*) compopt -o default 2>/dev/null; return ;; esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$word")); else compopt -o default 2>/dev/null; fi ;;
  esac
}}
complete -F _slipway slipway
)",
                     names, cases, fmt::join(keys, " "));
}

// '(-o --output)'{-o,--output}'[meaning]:FILE:_files'
std::string zsh_option(const OptionForm& option) {
  std::string value;
  if (takes_key(option)) {
    value = ":" + option.placeholder + ":_slipway_keys";
  } else if (!option.placeholder.empty()) {
    value = ":" + option.placeholder + ":_files";
  }
  const std::string name =
      option.letter.empty() ? "'*--" + option.name : fmt::format("'*'{{-{},--{}}}'", option.letter, option.name);
  return fmt::format("{}[{}]{}'", name, short_meaning(option.meaning), value);
}

std::string zsh_script(const std::vector<CommandForm>& forms, const std::vector<std::string>& keys) {
  std::string commands, cases;
  for (const CommandForm& form : forms) {
    commands += fmt::format("    '{}:{}'\n", form.name, short_meaning(std::string(form.summary)));
    cases += "    " + form.name + ") _arguments -S";
    for (const OptionForm& option : form.options) cases += " \\\n      " + zsh_option(option);
    cases += form.words.empty() ? " \\\n      '*:file:_files' ;;\n"
                                : fmt::format(" \\\n      '*:word:({})' ;;\n", fmt::join(form.words, " "));
  }
  return fmt::format(R"(#compdef slipway
# zsh completion of slipway; made by `slipway completion zsh`
_slipway_keys() {{
  local -a keys=({2})
  compadd -S = -a keys
}}
_slipway() {{
  local -a commands=(
{0}    'help:explain a command'
  )
  if (( CURRENT == 2 )); then
    _describe -t commands 'slipway command' commands
    return
  fi
  shift words
  (( CURRENT -= 1 ))
  case $words[1] in
    help) (( CURRENT == 2 )) && _describe -t commands 'slipway command' commands ;;
{1}  esac
}}
if [ "$funcstack[1]" = _slipway ]; then _slipway "$@"; else compdef _slipway slipway; fi
)",
                     commands, cases, fmt::join(keys, " "));
}

std::string fish_script(const std::vector<CommandForm>& forms, const std::vector<std::string>& keys) {
  std::string text = "# fish completion of slipway; made by `slipway completion fish`\ncomplete -c slipway -e\n";
  text += fmt::format("set -g __slipway_keys {}=\n", fmt::join(keys, "= "));
  for (const CommandForm& form : forms)
    text += fmt::format("complete -c slipway -n __fish_use_subcommand -f -a {} -d '{}'\n", form.name,
                        short_meaning(std::string(form.summary)));
  text += "complete -c slipway -n __fish_use_subcommand -f -a help -d 'explain a command'\n";
  for (const CommandForm& form : forms) {
    const std::string here = fmt::format("complete -c slipway -n '__fish_seen_subcommand_from {}'", form.name);
    for (const OptionForm& option : form.options) {
      std::string value;
      if (takes_key(option)) {
        value = " -x -a '$__slipway_keys'";
      } else if (!option.placeholder.empty()) {
        value = " -r";
      }
      text += fmt::format("{}{} -l {}{} -d '{}'\n", here, option.letter.empty() ? "" : " -s " + option.letter,
                          option.name, value, short_meaning(option.meaning));
    }
    if (!form.words.empty()) text += fmt::format("{} -f -a '{}'\n", here, fmt::join(form.words, " "));
  }
  return text;
}

}  // namespace

const std::vector<Shell>& shells() {
  static const std::vector<Shell> table = {
      {"bash", "slipway completion bash > ~/.local/share/bash-completion/completions/slipway", bash_script},
      {"zsh", "slipway completion zsh > \"${fpath[1]}/_slipway\"", zsh_script},
      {"fish", "slipway completion fish > ~/.config/fish/completions/slipway.fish", fish_script},
  };
  return table;
}

std::vector<std::string> settable_keys() {
  std::vector<std::string> keys;
  for (const Key& key : scenario_keys()) {
    const bool named_by_user = key.path.find_first_of("*[") != std::string_view::npos;
    if (!named_by_user && key.type != KeyType::section) keys.emplace_back(key.path);
  }
  return keys;
}

}  // namespace slipway::scenarios
