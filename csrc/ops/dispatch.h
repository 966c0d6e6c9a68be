#pragma once
// Operators as C++ functions of structs (csrc/ops/tensor_fields.h): calls through the dispatcher and registration of a
// function under a dispatch key. The flat argument lists of the schemas exist nowhere else.
//
//   Operator<Outputs(const Inputs&)> op("satformer::name");  op(inputs)      calls it, for the keys that are active
//   implement<"name", &name_cpu>(library)                                    registers Outputs name_cpu(const Inputs&)
//
// A parameter is a struct with fields(), which becomes its fields, or what the dispatcher takes: at::Tensor,
// std::optional<at::Tensor>, a list of tensors, a scalar; a Gate becomes its name. A result is a struct with fields(),
// which becomes a tuple (an undefined tensor is a result that is not wanted), or what the dispatcher takes.
#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>

#include "csrc/ops/checks.h"
#include "csrc/ops/tensor_fields.h"

namespace satformer::ops {

template <typename... Ts>
struct TypeList {};

template <typename... Lists>
struct Concatenated;
template <>
struct Concatenated<> {
  using Types = TypeList<>;
};
template <typename... A>
struct Concatenated<TypeList<A...>> {
  using Types = TypeList<A...>;
};
template <typename... A, typename... B, typename... Rest>
struct Concatenated<TypeList<A...>, TypeList<B...>, Rest...> : Concatenated<TypeList<A..., B...>, Rest...> {};

template <typename... Ts>
constexpr std::size_t length(TypeList<Ts...> /*list*/) {
  return sizeof...(Ts);
}

// --- one parameter ---
// Types: what stands for it in the flat signature. to(x): these, as a tuple. from(op, ...): x again; `op` for errors.
template <typename T>
struct Flat {
  using Types = TypeList<T>;
  static std::tuple<T> to(const T& x) { return {x}; }
  static T from(const char* /*op*/, const T& x) { return x; }
};

template <typename T>
struct FlatReference {
  using Types = TypeList<T&>;
  static std::tuple<T&> to(T& x) { return std::tuple<T&>(x); }
  static T& from(const char* /*op*/, T& x) { return x; }
};
template <>
struct Flat<at::Tensor> : FlatReference<const at::Tensor> {};
template <>
struct Flat<at::Tensor&> : FlatReference<at::Tensor> {};
template <>
struct Flat<std::optional<at::Tensor>> : FlatReference<const std::optional<at::Tensor>> {};

struct FlatMaybeTensor {
  using Types = TypeList<const std::optional<at::Tensor>&>;
  static std::tuple<std::optional<at::Tensor>> to(const at::Tensor& x) {
    return {x.defined() ? std::optional<at::Tensor>(x) : std::nullopt};
  }
  static at::Tensor from(const char* /*op*/, const std::optional<at::Tensor>& x) { return x.value_or(at::Tensor()); }
};

template <>
struct Flat<std::vector<at::Tensor>> {
  using Types = TypeList<at::TensorList>;
  static std::tuple<at::TensorList> to(const std::vector<at::Tensor>& x) { return {at::TensorList(x)}; }
  static std::vector<at::Tensor> from(const char* /*op*/, at::TensorList x) { return x.vec(); }
};

template <>
struct Flat<Gate> {
  using Types = TypeList<std::string_view>;
  static std::tuple<std::string_view> to(Gate x) { return {gate_name(x)}; }
  static Gate from(const char* op, std::string_view name) { return check_gate(op, name); }
};

template <typename Entry>
struct FlatEntry;
template <typename Struct, typename T>
struct FlatEntry<T Struct::*> : Flat<T> {};
template <typename Struct>
struct FlatEntry<MaybeTensor<Struct>> : FlatMaybeTensor {};

// Calls make(op, ...) with `kCount` elements of a tuple, from `kBegin` on.
template <std::size_t kBegin, std::size_t kCount, typename Make, typename Tuple>
decltype(auto) from_part(const Make& make, Tuple& flat) {
  return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) -> decltype(auto) {
    return make(std::get<kBegin + kIndex>(flat)...);
  }(std::make_index_sequence<kCount>());
}

// Where each of several parameters begins in the flat list.
template <typename... Flats>
constexpr std::array<std::size_t, sizeof...(Flats)> flat_offsets() {
  std::array<std::size_t, sizeof...(Flats)> offsets{length(typename Flats::Types())...};
  std::size_t begin = 0;
  for (std::size_t& offset : offsets) begin += std::exchange(offset, begin);
  return offsets;
}

template <typename Struct, typename Entries>
struct FlatStruct;
template <typename Struct, typename... Entry>
struct FlatStruct<Struct, std::tuple<Entry...>> {
  using Types = typename Concatenated<typename FlatEntry<Entry>::Types...>::Types;
  static auto to(const Struct& x) {
    return std::apply([&](Entry... entry) { return std::tuple_cat(FlatEntry<Entry>::to(member_of(x, entry))...); },
                      Struct::fields());
  }
  template <typename... Arguments>
  static Struct from(const char* op, const Arguments&... arguments) {
    const auto flat = std::tie(arguments...);
    Struct x;
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      (set<kIndex, Entry>(op, x, flat), ...);
    }(std::index_sequence_for<Entry...>());
    return x;
  }

 private:
  template <std::size_t kIndex, typename E, typename Tuple>
  static void set(const char* op, Struct& x, const Tuple& flat) {
    constexpr std::size_t kBegin = flat_offsets<FlatEntry<Entry>...>()[kIndex];
    constexpr std::size_t kCount = length(typename FlatEntry<E>::Types());
    member_of(x, std::get<kIndex>(Struct::fields())) =
        from_part<kBegin, kCount>([op](const auto&... part) { return FlatEntry<E>::from(op, part...); }, flat);
  }
};
template <HasFields Struct>
struct Flat<Struct> : FlatStruct<Struct, decltype(Struct::fields())> {};

// A function's parameter: references and const do not matter, but for tensors that are written.
template <typename Parameter>
using FlatParameter =
    Flat<std::conditional_t<std::is_same_v<Parameter, at::Tensor&>, at::Tensor&, std::remove_cvref_t<Parameter>>>;

// --- the result ---
template <typename Result>
struct FlatResult {
  using Type = Result;
  static Type to(Result&& result) { return std::forward<Result>(result); }
  static Result from(Type&& flat) { return std::forward<Type>(flat); }
};
template <>
struct FlatResult<void> {
  using Type = void;
};
template <HasFields Struct>
struct FlatResult<Struct> {
  static auto to(Struct&& x) {
    return std::apply([&](auto... entry) { return std::make_tuple(std::move(member_of(x, entry))...); },
                      Struct::fields());
  }
  using Type = decltype(to(std::declval<Struct>()));
  static Struct from(Type&& flat) {
    Struct x;
    std::apply(
        [&](auto... entry) {
          std::apply([&](auto&... value) { ((member_of(x, entry) = std::move(value)), ...); }, flat);
        },
        Struct::fields());
    return x;
  }
};

template <typename Result, typename Flattened>
struct SignatureOf;
template <typename Result, typename... Ts>
struct SignatureOf<Result, TypeList<Ts...>> {
  using Type = typename FlatResult<Result>::Type(Ts...);
};
// The operator's C++ signature, as the dispatcher knows it.
template <typename Function>
struct FlatSignature;
template <typename Result, typename... Parameters>
struct FlatSignature<Result(Parameters...)>
    : SignatureOf<Result, typename Concatenated<typename FlatParameter<Parameters>::Types...>::Types> {};

// A registered operator, looked up once: keep it in a function's static.
template <typename Function>
class Operator;
template <typename Result, typename... Parameters>
class Operator<Result(Parameters...)> {
 public:
  explicit Operator(const char* name)
      : handle_(c10::Dispatcher::singleton()
                    .findSchemaOrThrow(name, "")
                    .typed<typename FlatSignature<Result(Parameters...)>::Type>()) {}

  Result operator()(Parameters... parameters) const {
    auto flat = std::tuple_cat(FlatParameter<Parameters>::to(parameters)...);
    const auto call = [this](auto&... arguments) { return handle_.call(arguments...); };
    if constexpr (std::is_void_v<Result>) {
      std::apply(call, flat);
    } else {
      return FlatResult<Result>::from(std::apply(call, flat));
    }
  }

 private:
  c10::TypedOperatorHandle<typename FlatSignature<Result(Parameters...)>::Type> handle_;
};

// An operator's name as a template argument.
template <std::size_t kSize>
struct OperatorName {
  // NOLINTNEXTLINE(google-explicit-constructor): made from the literal
  constexpr OperatorName(const char (&literal)[kSize]) { std::copy_n(literal, kSize, text); }
  char text[kSize];
};

// A function of structs in the form of the schema.
template <auto kFunction, OperatorName kName, typename Function, typename Flattened>
struct Entry;
template <auto kFunction, OperatorName kName, typename Result, typename... Parameters, typename... Arguments>
struct Entry<kFunction, kName, Result (*)(Parameters...), TypeList<Arguments...>> {
  static typename FlatResult<Result>::Type call(Arguments... arguments) {
    const auto flat = std::tie(arguments...);
    return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      if constexpr (std::is_void_v<Result>) {
        kFunction(parameter<kIndex, Parameters>(flat)...);
      } else {
        return FlatResult<Result>::to(kFunction(parameter<kIndex, Parameters>(flat)...));
      }
    }(std::index_sequence_for<Parameters...>());
  }

 private:
  template <std::size_t kIndex, typename Parameter, typename Tuple>
  static decltype(auto) parameter(const Tuple& flat) {
    constexpr std::size_t kBegin = flat_offsets<FlatParameter<Parameters>...>()[kIndex];
    constexpr std::size_t kCount = length(typename FlatParameter<Parameter>::Types());
    return from_part<kBegin, kCount>(
        [](auto&... part) -> decltype(auto) { return FlatParameter<Parameter>::from(kName.text, part...); }, flat);
  }
};

template <auto kFunction, OperatorName kName, typename Function = decltype(kFunction)>
struct EntryOf;
template <auto kFunction, OperatorName kName, typename Result, typename... Parameters>
struct EntryOf<kFunction, kName, Result (*)(Parameters...)> {
  using Type = Entry<kFunction, kName, Result (*)(Parameters...),
                     typename Concatenated<typename FlatParameter<Parameters>::Types...>::Types>;
};
// entry<&name_cpu, "name">: what library.impl("name", ...) takes.
template <auto kFunction, OperatorName kName>
inline constexpr auto entry = &EntryOf<kFunction, kName>::Type::call;

// Registers a function under the library's dispatch key; for use in a TORCH_LIBRARY_IMPL block.
template <OperatorName kName, auto kFunction, typename Library>
void implement(Library& library) {
  library.impl(kName.text, entry<kFunction, kName>);
}

}  // namespace satformer::ops
