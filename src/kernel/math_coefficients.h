// SPDX-License-Identifier: Apache-2.0
// Polynomials of the functions in math.h, lowest power first. Written by
// tools/poly/coefficients.py; see there for intervals and weights.
#pragma once

namespace pumice::kernel {

// (e^r - 1 - r) / r^2 in r, |r| <= ln(2) / 2; 2^-25.82
inline constexpr double kExpF32[] = {
    0x1.fffffe0000000p-2, 0x1.5554b00000000p-3,  0x1.5556740000000p-5,
    0x1.1227760000000p-7, 0x1.6bebf20000000p-10,
};
// (e^r - 1 - r) / r^2 in r, |r| <= ln(2) / 2; 2^-59.94
inline constexpr double kExpF64[] = {
    0x1.0000000000000p-1,  0x1.5555555555559p-3,  0x1.555555555553fp-5,  0x1.111111110f6dap-7,
    0x1.6c16c16c1f07cp-10, 0x1.a01a01afd3c8ep-13, 0x1.a01a017bc6956p-16, 0x1.71ddf87f01157p-19,
    0x1.27e5362a68a06p-22, 0x1.af5e7480a1c1ap-26, 0x1.1ee88c192d930p-29,
};

// (ln(1 + f) - f) / f^2 in f, 1 + f from sqrt(1/2) to sqrt(2); 2^-24.8
inline constexpr double kLogF32[] = {
    -0x1.fffffa0000000p-2, 0x1.5556f40000000p-2, -0x1.00049a0000000p-2, 0x1.98d2c00000000p-3,
    -0x1.535d3e0000000p-3, 0x1.31852e0000000p-3, -0x1.2504540000000p-3, 0x1.65c6bc0000000p-4,
};

// (2 atanh(s) - 2 s) / s^3 in s^2, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1); 2^-30.21
inline constexpr double kAtanhF32[] = {
    0x1.55557a0000000p-1,
    0x1.995ed80000000p-2,
    0x1.31e03c0000000p-2,
};
// (2 atanh(s) - 2 s) / s^3 in s^2, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1); 2^-66.6
inline constexpr double kAtanhF64[] = {
    0x1.5555555555555p-1, 0x1.9999999999d10p-2, 0x1.24924924399bcp-2, 0x1.c71c724b41785p-3,
    0x1.745ce1d505b63p-3, 0x1.3b202262da1e4p-3, 0x1.0f6773b1a2ae2p-3, 0x1.0f0c29402c125p-3,
};

// (sin(r) - r) / r^3 in r^2, |r| <= pi / 4; 2^-27.91
inline constexpr double kSinF32[] = {
    -0x1.5555460000000p-3,
    0x1.1107780000000p-7,
    -0x1.9954020000000p-13,
};
// (sin(r) - r) / r^3 in r^2, |r| <= pi / 4; 2^-57.89
inline constexpr double kSinF64[] = {
    -0x1.5555555555548p-3, 0x1.111111110f730p-7,   -0x1.a01a019be9219p-13,
    0x1.71de35552b94ep-19, -0x1.ae5e4b843ddf2p-26, 0x1.5d8b55baed67fp-33,
};

// (cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4; 2^-32.99
inline constexpr double kCosF32[] = {
    0x1.55554a0000000p-5,
    -0x1.6c0c280000000p-10,
    0x1.99e80c0000000p-16,
};
// (cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4; 2^-63.94
inline constexpr double kCosF64[] = {
    0x1.555555555554bp-5,   -0x1.6c16c16c15014p-10, 0x1.a01a019c8efaap-16,
    -0x1.27e4f7f168d9ep-22, 0x1.1ee9dbae46981p-29,  -0x1.8fa671594b761p-37,
};

// (asin(x) - x) / x^3 in x^2, |x| <= 1/2; 2^-27.62
inline constexpr double kAsinF32[] = {
    0x1.5555c80000000p-3, 0x1.3302040000000p-4, 0x1.747bba0000000p-5,
    0x1.8c3e260000000p-6, 0x1.595c960000000p-5,
};
// (asin(x) - x) / x^3 in x^2, |x| <= 1/2; 2^-59.86
inline constexpr double kAsinF64[] = {
    0x1.5555555555577p-3, 0x1.333333332e131p-4, 0x1.6db6db721268dp-5, 0x1.f1c71a94f2717p-6,
    0x1.6e8bdee04fe5cp-6, 0x1.1c49f05b85632p-6, 0x1.ca1f8d984b0adp-7, 0x1.7585880bcf606p-7,
    0x1.613c9791d990cp-7, 0x1.e5f4be8adf30ep-9, 0x1.639cba028e238p-6, -0x1.57fdf0e0ba423p-6,
    0x1.0b46e6d26c27ep-5,
};

// (atan(x) - x) / x^3 in x^2, |x| <= 1; 2^-28.49
inline constexpr double kAtanF32[] = {
    -0x1.55553e0000000p-2, 0x1.9991e40000000p-3,  -0x1.2420840000000p-3,
    0x1.c08c180000000p-4,  -0x1.5808060000000p-4, 0x1.da247e0000000p-5,
    -0x1.fd6ef20000000p-6, 0x1.640fdc0000000p-7,  -0x1.d32b8c0000000p-10,
};
// (atan(x) - x) / x^3 in x^2, |x| <= 1; 2^-60.19
inline constexpr double kAtanF64[] = {
    -0x1.555555555554dp-2,  0x1.9999999998c65p-3, -0x1.2492492457699p-3,  0x1.c71c71b650d01p-4,
    -0x1.745d15d2cb458p-4,  0x1.3b139bec3b970p-4, -0x1.1110335a472d8p-4,  0x1.e1d4928833085p-5,
    -0x1.aeda86bd21dd6p-5,  0x1.84b50c8de642dp-5, -0x1.5f26336b6d432p-5,  0x1.3908e6427c5a0p-5,
    -0x1.0c9c15a12bac8p-5,  0x1.ac8e6a17f23a3p-6, -0x1.311202901e5d8p-6,  0x1.73049c389d6f2p-7,
    -0x1.70053e4e453c7p-8,  0x1.1a353ab9531b9p-9, -0x1.3719c07082517p-11, 0x1.b413fdbc87a80p-14,
    -0x1.22b10f6835407p-17,
};

// (sinh(x) - x) / x^3 in x^2, |x| <= 1; 2^-31.62
inline constexpr double kSinhF32[] = {
    0x1.5555560000000p-3,
    0x1.1110e00000000p-7,
    0x1.a022bc0000000p-13,
    0x1.756c1e0000000p-19,
};
// (sinh(x) - x) / x^3 in x^2, |x| <= 1; 2^-62.96
inline constexpr double kSinhF64[] = {
    0x1.5555555555555p-3,  0x1.111111111119bp-7,  0x1.a01a01a00735cp-13, 0x1.71de3a68d00e3p-19,
    0x1.ae644122d3157p-26, 0x1.61314d23e0941p-33, 0x1.a6657823db72cp-41, 0x1.d29756501cc4ep-48,
};

// erf(x) / x - 1 in x^2, |x| <= 15/16; 2^-25.59
inline constexpr double kErfF32[] = {
    0x1.06eba60000000p-3,  -0x1.8126dc0000000p-2, 0x1.ce18560000000p-4,
    -0x1.b6698e0000000p-6, 0x1.466a440000000p-8,  -0x1.36a7d40000000p-11,
};
// erf(x) / x - 1 in x^2, |x| <= 15/16; 2^-56.33
inline constexpr double kErfF64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b037a2ep-2,  0x1.ce2f21a0466c2p-4,  -0x1.b82ce313ba6abp-6,
    0x1.565bcd41c5fa1p-8,  -0x1.c02dbe32911f2p-11, 0x1.f9a46fdde75c0p-14, -0x1.f4eda864394ebp-17,
    0x1.bb69c9ec175c1p-20, -0x1.6d9a3202801e6p-23, 0x1.522fe12629b8dp-26, -0x1.c4259c5577720p-29,
    0x1.fd40e00d71386p-32,
};

// log2(1 - erf(t)) in t, 15/16 <= t <= 4 (f64: 6); 2^-29.36
inline constexpr double kErfcF32[] = {
    -0x1.522bd40000000p-12, -0x1.a0712c0000000p+0, -0x1.d6cd760000000p-1, -0x1.3295f20000000p-3,
    0x1.05bdaa0000000p-5,   -0x1.1dd5b80000000p-8, 0x1.2553f40000000p-12,
};
// log2(1 - erf(t)) in t, 15/16 <= t <= 4 (f64: 6); 2^-61.51
inline constexpr double kErfcF64[] = {
    -0x1.a1eb0c80096b6p-28, -0x1.a0be83a551defp+0,  -0x1.d63ecd277a006p-1, -0x1.2fa93b9810f02p-3,
    0x1.c44dfbcbc96a3p-6,   0x1.20fa122c6ec5cp-12,  -0x1.3a34b23f97164p-9, 0x1.9869fab2a6f2ep-11,
    0x1.797cfff39aeeep-15,  -0x1.5fb4b3812bf9ep-13, 0x1.97bb3a91a8a25p-14, -0x1.321dda8e313c0p-15,
    0x1.57ac5cac49bd4p-17,  -0x1.2bb2c27656d7ap-19, 0x1.97df194ae86fep-22, -0x1.aaf68c06214adp-25,
    0x1.4ccf4927b5feap-28,  -0x1.6c335a6104ed5p-32, 0x1.f34f3c227a9c8p-37, -0x1.428cacff7fd33p-42,
};

// (t + 4) / 8 exp(t^2 / 2) Phi(-t) in s = (t - 4) / (t + 4), t up to 13.25 (f64: 37.75); 2^-25.61
inline constexpr double kMillsF32[] = {
    0x1.82b4bc0000000p-4,  -0x1.373e3a0000000p-4,  0x1.8c6d9c0000000p-5,   -0x1.7dffac0000000p-6,
    0x1.eed57a0000000p-8,  -0x1.ed70f20000000p-11, -0x1.cd34e00000000p-12, 0x1.9d13ce0000000p-13,
    0x1.967a7e0000000p-16, -0x1.06f9680000000p-16,
};
// (t + 4) / 8 exp(t^2 / 2) Phi(-t) in s = (t - 4) / (t + 4), t up to 13.25 (f64: 37.75); 2^-53.15
inline constexpr double kMillsF64[] = {
    0x1.82b4bb8c94dcep-4,  -0x1.373e3a893c28ap-4,  0x1.8c6dbf2cfc2b3p-5,   -0x1.7dff2bff68388p-6,
    0x1.eec4cc3e4d41ap-8,  -0x1.ee27610482084p-11, -0x1.c81719d567eafp-12, 0x1.ab825fc18cea7p-13,
    0x1.17a4ae461d0e1p-16, -0x1.e4a425907d397p-16, -0x1.001e772a6b8d4p-22, 0x1.26d09bd2ddd59p-18,
    0x1.80b4857938378p-24, -0x1.8d4b4f0cb8c8ap-21, -0x1.51ecc89205cffp-24, 0x1.1237a2dd7aa64p-23,
    0x1.235b6537e05e1p-25, -0x1.4ceb2135d8532p-26, -0x1.6cb144aa47ef8p-27, 0x1.cd588189c815bp-30,
    0x1.4bcce0b27d74ep-29, 0x1.eb947ecf0f249p-33,  -0x1.4f645bb77c62bp-32, -0x1.775530aac7996p-34,
};

}  // namespace pumice::kernel
