// Several lambdas as one visitor of a variant: std::visit(Overloaded{[](const A&) {..}, [](const B&) {..}}, value).
//
// A missing alternative does not compile, so a new event or job cannot be forgotten.
#pragma once

namespace causeway {

template <class... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // clang 14 does not deduce it

}  // namespace causeway
