// The codec `dense` (alias `none`): every value as f32, little-endian. Lossless, 4 bytes an element.
#pragma once

#include "compression/codec.h"

namespace causeway {

CodecEntry dense_codec();

}  // namespace causeway
