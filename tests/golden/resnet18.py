"""Makes resnet18.txt: loss and gradients of ResNet-18 (CIFAR shape), computed with numpy in double.

    python3 tests/golden/resnet18.py > tests/golden/resnet18.txt

Nothing of Causeway is used: convolutions are sums over the places of the window, batch norm and the residual blocks are
written out after He et al. 2016 and Ioffe and Szegedy 2015. Parameters and examples come from an integer hash that
tests/model/golden_test.cpp repeats. Per tensor the file has the gradient's length and its product with the hash.
"""
import numpy as np

BATCH = 2
LABELS = [3, 7]
EPSILON = 1e-5


def noise(stream, count):
    """Numbers in [-1, 1), each a function of its stream and place."""
    x = (np.arange(count, dtype=np.uint64) * np.uint64(2654435761) + np.uint64(stream * 40503 + 12345)) % 2**32
    x ^= x >> np.uint64(16)
    x = x * np.uint64(2246822519) % 2**32
    x ^= x >> np.uint64(13)
    return x.astype(np.float64) / 2**31 - 1


class Tensors:
    """Parameters in chain order, and their gradients."""

    def __init__(self):
        self.values, self.gradients = [], []

    def add(self, shape, scale, offset=0.0):
        values = noise(len(self.values) + 1, int(np.prod(shape))) * scale + offset
        self.values.append(values.astype(np.float32).astype(np.float64).reshape(shape))
        self.gradients.append(None)
        return len(self.values) - 1


class Conv:
    def __init__(self, tensors, inputs, outputs, size, stride):
        self.tensors, self.size, self.stride, self.pad = tensors, size, stride, (size - 1) // 2
        self.weight = tensors.add((outputs, size, size, inputs), (3.0 / (inputs * size * size)) ** 0.5)

    def places(self, padded, height, width):
        for p in range(self.size):
            for q in range(self.size):
                rows = slice(p, p + (height - 1) * self.stride + 1, self.stride)
                columns = slice(q, q + (width - 1) * self.stride + 1, self.stride)
                yield p, q, (slice(None), rows, columns)

    def forward(self, x):
        w = self.tensors.values[self.weight]
        self.shape = x.shape
        self.padded = np.pad(x, ((0, 0), (self.pad,) * 2, (self.pad,) * 2, (0, 0)))
        height = (x.shape[1] + 2 * self.pad - self.size) // self.stride + 1
        y = np.zeros((x.shape[0], height, height, w.shape[0]))
        for p, q, place in self.places(self.padded, height, height):
            y += self.padded[place] @ w[:, p, q, :].T
        return y

    def backward(self, dy):
        w = self.tensors.values[self.weight]
        dw, dx = np.zeros_like(w), np.zeros_like(self.padded)
        for p, q, place in self.places(self.padded, dy.shape[1], dy.shape[2]):
            dw[:, p, q, :] = np.einsum("bhwo,bhwi->oi", dy, self.padded[place], optimize=True)
            dx[place] += dy @ w[:, p, q, :]
        self.tensors.gradients[self.weight] = dw
        return dx[:, self.pad:self.pad + self.shape[1], self.pad:self.pad + self.shape[2], :]


class Norm:
    def __init__(self, tensors, channels):
        self.tensors = tensors
        self.gamma, self.beta = tensors.add((channels,), 0.1, 1.0), tensors.add((channels,), 0.1)

    def forward(self, x):
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        self.rstd = 1 / np.sqrt(variance + EPSILON)
        self.h = (x - mean) * self.rstd
        return self.h * self.tensors.values[self.gamma] + self.tensors.values[self.beta]

    def backward(self, dy):
        self.tensors.gradients[self.gamma] = (dy * self.h).sum((0, 1, 2))
        self.tensors.gradients[self.beta] = dy.sum((0, 1, 2))
        g = dy * self.tensors.values[self.gamma]
        return self.rstd * (g - g.mean((0, 1, 2)) - self.h * (g * self.h).mean((0, 1, 2)))


class Relu:
    def forward(self, x):
        self.on = x > 0
        return x * self.on

    def backward(self, dy):
        return dy * self.on


class Chain:
    def __init__(self, parts):
        self.parts = parts

    def forward(self, x):
        for part in self.parts:
            x = part.forward(x)
        return x

    def backward(self, dy):
        for part in reversed(self.parts):
            dy = part.backward(dy)
        return dy


class Block:
    def __init__(self, tensors, inputs, outputs, stride):
        self.main = Chain([Conv(tensors, inputs, outputs, 3, stride), Norm(tensors, outputs), Relu(),
                           Conv(tensors, outputs, outputs, 3, 1), Norm(tensors, outputs)])
        same = inputs == outputs and stride == 1
        self.shortcut = Chain([] if same else [Conv(tensors, inputs, outputs, 1, stride), Norm(tensors, outputs)])
        self.relu = Relu()

    def forward(self, x):
        return self.relu.forward(self.main.forward(x) + self.shortcut.forward(x))

    def backward(self, dy):
        dz = self.relu.backward(dy)
        return self.main.backward(dz) + self.shortcut.backward(dz)


def main():
    tensors = Tensors()
    parts, inputs = [Conv(tensors, 3, 64, 3, 1), Norm(tensors, 64), Relu()], 64
    for outputs, stride in [(64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)]:
        parts.append(Block(tensors, inputs, outputs, stride))
        inputs = outputs
    body = Chain(parts)
    weight, bias = tensors.add((10, 512), (3.0 / 512) ** 0.5), tensors.add((10,), 0.1)
    images = noise(1000, BATCH * 32 * 32 * 3).astype(np.float32).astype(np.float64).reshape(BATCH, 32, 32, 3)

    maps = body.forward(images)
    features = maps.mean((1, 2))
    scores = features @ tensors.values[weight].T + tensors.values[bias]
    shifted = np.exp(scores - scores.max(1, keepdims=True))
    probabilities = shifted / shifted.sum(1, keepdims=True)
    loss = -np.log(probabilities[np.arange(BATCH), LABELS]).mean()
    slope = probabilities.copy()
    slope[np.arange(BATCH), LABELS] -= 1
    slope /= BATCH
    tensors.gradients[weight], tensors.gradients[bias] = slope.T @ features, slope.sum(0)
    spread = (slope @ tensors.values[weight])[:, None, None, :] / (maps.shape[1] * maps.shape[2])
    body.backward(np.broadcast_to(spread, maps.shape))

    print(f"loss {loss:.12g}")
    for index, gradient in enumerate(tensors.gradients):
        flat = gradient.reshape(-1)
        product = flat @ noise(index + 2001, flat.size)
        print(f"tensor {flat.size} {np.sqrt(flat @ flat):.9g} {product:.9g}")


main()
