// SPDX-License-Identifier: Apache-2.0
// The rules that every Model keeps, wherever it came from.
#pragma once

#include "onnx/model.h"

namespace pumice::onnx {

/// Throws Error(malformed_model) that names the place unless, in the graph, in subgraphs and in
/// functions:
/// - every input, output, value info, initializer, attribute has a name, every node an op_type;
/// - every value has one producer: a graph input, an initializer (which may share an input's name,
///   as its default), or one node output. A name in a subgraph may hide one outside of it;
/// - nodes stand in an order in which they can run: each input is left out or made before;
/// - each output of a graph or function is made in it (of a subgraph: or outside);
/// - a node's attribute names differ; ref_attr_name stands only in functions and names one of the
///   function's attributes;
/// - functions differ in (domain, name, overload);
/// - the domain of every node is among the opset imports. A model that imports nothing at all
///   passes: before IR version 3 that meant opset 1 of the default domain.
void validate(const Model& model);

}  // namespace pumice::onnx
