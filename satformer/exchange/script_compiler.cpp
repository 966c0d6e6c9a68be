#include "satformer/exchange/script_compiler.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>

#include <map>
#include <memory>

namespace satformer::exchange {
namespace {

using models::NamedNode;
using models::ScriptNode;
using torch::jit::CompilationUnit;
using torch::jit::GraphFunction;
using torch::jit::Module;
using torch::jit::SourceRange;
using torch::jit::SugaredValue;

std::string qualified(const std::string& name) { return "__torch__.satformer." + name; }

std::map<std::string, c10::TupleTypePtr> make_tuple_types() {
  const c10::TypePtr tensor = c10::TensorType::get();
  const c10::TypePtr tensors = c10::ListType::create(tensor);
  const auto optional = [](const c10::TypePtr& type) -> c10::TypePtr { return c10::OptionalType::create(type); };
  const auto named = [](const std::string& name, const std::vector<std::string>& fields,
                        const std::vector<c10::TypePtr>& types) {
    return c10::TupleType::createNamed(c10::QualifiedName(qualified(name)), fields, types);
  };
  return {{"Sequence", named("Sequence", {"cos", "sin", "mask", "causal", "caches", "kept"},
                             {tensor, tensor, optional(tensor), c10::BoolType::get(), tensors, optional(tensors)})},
          {"Gating", named("Gating", {"scale", "shift", "found"}, {tensor, tensor, optional(tensors)})}};
}

// `ops`: ops.NAMESPACE.OPERATOR.
struct OperatorNamespaces : SugaredValue {
  std::string kind() const override { return "operator namespaces"; }
  std::shared_ptr<SugaredValue> attr(const SourceRange& /*range*/, GraphFunction& /*method*/,
                                     const std::string& field) override {
    return std::make_shared<torch::jit::BuiltinModule>(field);
  }
};

class Resolver : public torch::jit::NativeResolver {
 public:
  explicit Resolver(std::map<std::string, c10::TupleTypePtr> types) : types_(std::move(types)) {}

  std::shared_ptr<SugaredValue> resolveValue(const std::string& name, GraphFunction& method,
                                             const SourceRange& range) override {
    if (name == "ops") return std::make_shared<OperatorNamespaces>();
    const auto type = types_.find(name);
    if (type != types_.end()) return std::make_shared<torch::jit::NamedTupleConstructor>(type->second);
    return torch::jit::NativeResolver::resolveValue(name, method, range);
  }
  c10::TypePtr resolveType(const std::string& name, const SourceRange& /*range*/) override {
    const auto type = types_.find(name);
    return type != types_.end() ? type->second : nullptr;
  }

 private:
  std::map<std::string, c10::TupleTypePtr> types_;
};

class Compiler {
 public:
  Compiler() {
    const std::map<std::string, c10::TupleTypePtr> types = make_tuple_types();
    for (const auto& [name, type] : types) unit_->register_type(type);
    resolver_ = std::make_shared<Resolver>(types);
  }

  Module compile(const ScriptNode& node) {
    std::vector<std::pair<std::string, Module>> children;
    for (const NamedNode& child : node.children) children.emplace_back(child.name, compile(child.node));
    c10::ClassTypePtr& type = classes_[layout(node, children)];
    const bool is_new = type == nullptr;
    Module module = is_new ? Module(c10::QualifiedName(qualified(node.class_name)), unit_, /*shouldMangle=*/true)
                           : Module(unit_, type);
    module.register_attribute("training", c10::BoolType::get(), false);  // what eval() and freeze() look for
    for (const auto& [name, tensor] : node.parameters) module.register_parameter(name, tensor, /*is_buffer=*/false);
    for (const auto& [name, tensor] : node.buffers) module.register_buffer(name, tensor);
    for (const auto& [name, value] : node.constants) module.register_attribute(name, value.type(), value);
    for (const auto& [name, child] : children) module.register_module(name, child);
    if (is_new) {
      type = module.type();
      if (!node.code.empty()) module.define(node.code, resolver_);
    }
    return module;
  }

 private:
  // What makes two nodes of one class.
  static std::string layout(const ScriptNode& node, const std::vector<std::pair<std::string, Module>>& children) {
    std::string text = node.class_name + "\n" + node.code;
    for (const auto& [name, tensor] : node.parameters) text += "\nparameter " + name;
    for (const auto& [name, tensor] : node.buffers) text += "\nbuffer " + name;
    for (const auto& [name, value] : node.constants) text += "\nconstant " + name + " " + value.type()->str();
    for (const auto& [name, child] : children) text += "\nmodule " + name + " " + child.type()->name()->qualifiedName();
    return text;
  }

  std::shared_ptr<CompilationUnit> unit_ = std::make_shared<CompilationUnit>();
  std::shared_ptr<Resolver> resolver_;
  std::map<std::string, c10::ClassTypePtr> classes_;
};

}  // namespace

Module compile(const models::ScriptNode& root) { return Compiler().compile(root); }

}  // namespace satformer::exchange
