// SPDX-License-Identifier: Apache-2.0
// Numbers of the SPIR-V specification (1.6, GLSL.std.450, SPV_KHR_cooperative_matrix,
// SPV_KHR_bfloat16) that the emitter writes: facts of the format, kept here so that no header of it
// is needed.
#pragma once

#include <cstdint>

namespace pumice::spirv {

inline constexpr uint32_t kMagic = 0x07230203, kVersion16 = 0x00010600;

enum class Opcode : uint32_t {
  Extension = 10,
  ExtInstImport = 11,
  ExtInst = 12,
  MemoryModel = 14,
  EntryPoint = 15,
  ExecutionMode = 16,
  Capability = 17,
  TypeVoid = 19,
  TypeBool = 20,
  TypeInt = 21,
  TypeFloat = 22,
  TypeVector = 23,
  TypeArray = 28,
  TypeRuntimeArray = 29,
  TypeStruct = 30,
  TypePointer = 32,
  TypeFunction = 33,
  ConstantTrue = 41,
  ConstantFalse = 42,
  Constant = 43,
  ConstantComposite = 44,
  ConstantNull = 46,
  Function = 54,
  FunctionEnd = 56,
  Variable = 59,
  Load = 61,
  Store = 62,
  AccessChain = 65,
  Decorate = 71,
  MemberDecorate = 72,
  CompositeConstruct = 80,
  CompositeExtract = 81,
  ConvertFToU = 109,
  ConvertFToS = 110,
  ConvertSToF = 111,
  ConvertUToF = 112,
  UConvert = 113,
  SConvert = 114,
  FConvert = 115,
  ConvertPtrToU = 117,
  ConvertUToPtr = 120,
  Bitcast = 124,
  SNegate = 126,
  FNegate = 127,
  IAdd = 128,
  FAdd = 129,
  ISub = 130,
  FSub = 131,
  IMul = 132,
  FMul = 133,
  UDiv = 134,
  SDiv = 135,
  FDiv = 136,
  UMod = 137,
  SRem = 138,
  MatrixTimesScalar = 143,
  IAddCarry = 149,
  UMulExtended = 151,
  SMulExtended = 152,
  LogicalEqual = 164,
  LogicalNotEqual = 165,
  LogicalOr = 166,
  LogicalAnd = 167,
  LogicalNot = 168,
  Select = 169,
  IEqual = 170,
  INotEqual = 171,
  ULessThan = 176,
  SLessThan = 177,
  ULessThanEqual = 178,
  SLessThanEqual = 179,
  FOrdEqual = 180,
  FUnordNotEqual = 183,
  FOrdLessThan = 184,
  FOrdLessThanEqual = 188,
  ShiftRightLogical = 194,
  ShiftRightArithmetic = 195,
  ShiftLeftLogical = 196,
  BitwiseOr = 197,
  BitwiseXor = 198,
  BitwiseAnd = 199,
  Not = 200,
  BitCount = 205,
  ControlBarrier = 224,
  MemoryBarrier = 225,
  AtomicExchange = 229,
  AtomicCompareExchange = 230,
  AtomicIAdd = 234,
  AtomicSMin = 236,
  AtomicUMin = 237,
  AtomicSMax = 238,
  AtomicUMax = 239,
  AtomicAnd = 240,
  AtomicOr = 241,
  AtomicXor = 242,
  Phi = 245,
  LoopMerge = 246,
  SelectionMerge = 247,
  Label = 248,
  Branch = 249,
  BranchConditional = 250,
  Return = 253,
  GroupNonUniformAll = 334,
  GroupNonUniformAny = 335,
  GroupNonUniformBroadcastFirst = 338,
  GroupNonUniformShuffle = 345,
  GroupNonUniformShuffleXor = 346,
  SDot = 4450,
  UDot = 4451,
  SUDot = 4452,
  TypeCooperativeMatrixKHR = 4456,
  CooperativeMatrixLoadKHR = 4457,
  CooperativeMatrixStoreKHR = 4458,
  CooperativeMatrixMulAddKHR = 4459,
};

/// Instructions of the extended set GLSL.std.450.
enum class Glsl : uint32_t {
  RoundEven = 2,
  Trunc = 3,
  FAbs = 4,
  SAbs = 5,
  Floor = 8,
  Ceil = 9,
  Exp2 = 29,
  Sqrt = 31,
  UMin = 38,
  SMin = 39,
  UMax = 41,
  SMax = 42,
  Fma = 50,
  NMin = 79,
  NMax = 80
};

enum class Capability : uint32_t {
  Shader = 1,
  Float16 = 9,
  Float64 = 10,
  Int64 = 11,
  Int16 = 22,
  Int8 = 39,
  GroupNonUniform = 61,
  GroupNonUniformVote = 62,
  GroupNonUniformBallot = 64,
  GroupNonUniformShuffle = 65,
  StorageBuffer16BitAccess = 4433,
  StorageBuffer8BitAccess = 4448,
  DenormPreserve = 4464,
  SignedZeroInfNanPreserve = 4466,
  RoundingModeRTE = 4467,
  BFloat16TypeKHR = 5116,
  BFloat16CooperativeMatrixKHR = 5118,
  VulkanMemoryModel = 5345,
  VulkanMemoryModelDeviceScope = 5346,
  PhysicalStorageBufferAddresses = 5347,
  DotProductInput4x8BitPacked = 6018,
  DotProduct = 6019,
  CooperativeMatrixKHR = 6022
};

enum class ExecutionMode : uint32_t {
  LocalSize = 17,
  DenormPreserve = 4459,
  SignedZeroInfNanPreserve = 4461,
  RoundingModeRTE = 4462
};

enum class Decoration : uint32_t {
  Block = 2,
  ArrayStride = 6,
  BuiltIn = 11,
  Restrict = 19,
  NonWritable = 24,
  Offset = 35,
  NoContraction = 42
};

enum class BuiltIn : uint32_t {
  NumWorkgroups = 24,
  WorkgroupId = 26,
  LocalInvocationIndex = 29,
  SubgroupId = 40,
  SubgroupLocalInvocationId = 41
};

enum class Storage : uint32_t {
  Input = 1,
  Workgroup = 4,
  Function = 7,
  PushConstant = 9,
  PhysicalStorageBuffer = 5349
};

// Scopes, as numbers that become constants of a module.
inline constexpr uint32_t kScopeDevice = 1, kScopeWorkgroup = 2, kScopeSubgroup = 3;

// Memory semantics of barriers, and operands of loads and stores.
inline constexpr uint32_t kAcquire = 0x2, kRelease = 0x4, kAcquireRelease = 0x8,
                          kUniformMemory = 0x40, kWorkgroupMemory = 0x100, kMakeAvailable = 0x2000,
                          kMakeVisible = 0x4000;
inline constexpr uint32_t kAligned = 0x2, kPointerAvailable = 0x8, kPointerVisible = 0x10,
                          kNonPrivate = 0x20;

// Control of loops, layouts of matrices, and which components of a product are signed.
inline constexpr uint32_t kDontUnroll = 0x2, kRowMajor = 0, kColumnMajor = 1;
inline constexpr uint32_t kSignedA = 0x1, kSignedB = 0x2, kSignedC = 0x4, kSignedResult = 0x8;

}  // namespace pumice::spirv
