// The aggregator `mean`: sum n_k w_k / sum n_k, by exact sums (FedAvg; McMahan et al. 2017, algorithm 1).
#pragma once

#include "aggregation/aggregator.h"

namespace causeway {

AggregatorEntry mean_aggregator();

}  // namespace causeway
