"""The networks of `causeway bench training` in PyTorch, on the CPU: the other side of the table in docs/performance.md.

    python3 tests/bench/torch_training.py [mlp] [cnn] [resnet]      (python3-torch; says so and ends when it is missing)

Every setting that helped is tried (channels last or not, oneDNN on or off); the best of three medians is printed with
the process's peak memory.
"""
import resource
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit("skipped: python3-torch is not installed")

torch.set_num_threads(2)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs),
                                  nn.ReLU(inplace=True), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
                                  nn.BatchNorm2d(outputs))
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu_(self.main(x) + self.shortcut(x))


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


def resnet():
    parts, inputs = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)], 64
    for outputs, stride in [(64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)]:
        parts.append(Block(inputs, outputs, stride))
        inputs = outputs
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def median_step(make, shape, momentum, steps, last):
    torch.manual_seed(1)
    model, x, y = make(), torch.randn(*shape), torch.randint(0, 10, (shape[0],))
    if last and len(shape) == 4:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=momentum)
    times = []
    for step in range(steps + 2):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step >= 2:
            times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2]


CASES = {"mlp": (mlp, (128, 784), 0.9, 60), "cnn": (cnn, (64, 1, 28, 28), 0.0, 30),
         "resnet": (resnet, (64, 3, 32, 32), 0.9, 3)}
for name in sys.argv[1:] or CASES:
    make, shape, momentum, steps = CASES[name]
    best = min((median_step(make, shape, momentum, steps, last), last) for last in (False, True) for _ in range(3))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name}: {1e3 * best[0]:.2f} ms a step, 2 threads{', channels last' if best[1] else ''}, peak {peak:.0f} MB")
