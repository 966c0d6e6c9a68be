#include "satformer/models/script/node.h"

#include <algorithm>

namespace satformer::models {
namespace {

template <typename List>
auto find_named(List& list, std::string_view name) {
  return std::find_if(list.begin(), list.end(), [name](const NamedNode& item) { return item.name == name; });
}

}  // namespace

ScriptNode& ScriptNode::child(std::string_view path) {
  ScriptNode* node = this;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    auto found = find_named(node->children, name);
    if (found == node->children.end()) found = node->children.insert(found, NamedNode{std::string(name), {}});
    node = &found->node;
  }
  return *node;
}

bool ScriptNode::has_child(std::string_view name) const { return find_named(children, name) != children.end(); }

bool ScriptNode::has_parameter(std::string_view name) const {
  return std::any_of(parameters.begin(), parameters.end(), [name](const auto& item) { return item.first == name; });
}

}  // namespace satformer::models
